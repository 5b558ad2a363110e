//! What a guest may use, and what happens when it wants more.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bounds;
mod crowds;
mod instantiation;
mod results;
mod stopping;
