//! Plugin directories in use: adding and replacing packages, dynamic tools, search and keys.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod discovery;
mod dynamic;
mod flow;
mod groups;
mod hot;
mod needs;
mod place;
