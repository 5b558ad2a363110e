//! Fetches web pages and returns their text as Markdown, as a Toolwit plugin.
//!
//! The model reads the WIT in `wit/http-fetch.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively. The
//! sandbox decides which hosts can be reached: each redirect is a request of its own, which needs a grant as well.

pub mod content;
pub mod excerpt;
pub mod html;
pub mod page;
pub mod redirect;

#[cfg(target_family = "wasm")]
mod plugin;
