//! A plugin directory in use: from a dropped file to an answer, and packages that change while they are called.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod asking;
mod dynamic;
mod flow;
mod hot;
mod needs;
mod place;
