//! Limits the number of calls of tools in a period, as a Toolwit interceptor.
//!
//! The settings come from `wasi:config`, the counts from `wasi:keyvalue`. Without access to the store, the interceptor denies
//! every call. Without access to the clock, a period never ends. Everything except the WIT bindings in `plugin` is ordinary
//! Rust and tested natively.

pub mod count;
pub mod settings;

#[cfg(target_family = "wasm")]
mod plugin;
