//! Counts, converts, compares and rewrites text, as a Toolwit plugin.
//!
//! The model reads the WIT in `wit/text.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested
//! natively. Hostile text causes neither panics nor excessive run time: patterns are matched in linear time.

pub mod count;
pub mod diff;
pub mod layout;
pub mod letter_case;
pub mod pattern;
pub mod slug;

#[cfg(target_family = "wasm")]
mod plugin;
