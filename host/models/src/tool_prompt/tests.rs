//! Tests of tool calling through the prompt.

#![allow(clippy::unwrap_used)]

mod over_http;
mod text_forms;
