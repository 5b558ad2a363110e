//! What a guest may use, what happens when it wants more, and how its resources live.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bounds;
mod crowds;
mod customers;
mod entities;
mod exposure;
mod golden;
mod instantiation;
mod museum;
mod mutants;
mod results;
mod stopping;
