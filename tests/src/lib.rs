//! Shared by the end-to-end tests: runtimes, guests, and conversations that call tools by name.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod conversation;
pub mod fuzz;
mod guest;
pub mod word_vectors;

pub use conversation::Conversation;
pub use guest::{Guests, component_of};
