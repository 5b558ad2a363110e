//! Reads, lists, searches and edits text files in granted directories, as a Toolwit plugin.
//!
//! The model reads the WIT in `wit/files.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested
//! natively. The sandbox decides which directories exist: this code has no rule of its own about paths. It follows no links when it
//! walks a directory, so that a link cannot make it walk forever.

pub mod edit;
pub mod failure;
pub mod search;
pub mod walk;

#[cfg(target_family = "wasm")]
mod plugin;
