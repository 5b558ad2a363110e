//! Tool calling through the prompt, over HTTP.

#![allow(clippy::unwrap_used)]

mod over_http;
mod text_forms;
