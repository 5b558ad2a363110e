//! Masks personal data and credentials in the results of tools, as a Toolwit interceptor.
//!
//! Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively. A text is read once for each kind, so that the
//! time is linear in its length.

pub mod json;
pub mod kinds;
pub mod masks;

#[cfg(target_family = "wasm")]
mod plugin;
