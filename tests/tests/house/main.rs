//! The rules of the house that the compiler cannot check: what tests claim to prove, which module may import which, and
//! what a public file may name.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod files;
mod layers;
mod lists;
mod texts;
