//! Limits of a guest, errors when it exceeds them, and the lifetime of its resources.

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
mod fairness;
mod golden;
mod instantiation;
mod museum;
mod mutants;
mod results;
mod state;
mod stopping;
mod workshop;
