//! Counts, converts, compares and rewrites text, as a Toolwit plugin.
//!
//! The WIT in `wit/text.wit` is what the model gets to read. Everything but `plugin`, which speaks WIT, is ordinary Rust
//! and tested natively. None of it panics or runs away on hostile text: patterns are matched in linear time.

pub mod count;
pub mod diff;
pub mod layout;
pub mod letter_case;
pub mod pattern;
pub mod slug;

#[cfg(target_family = "wasm")]
mod plugin;
