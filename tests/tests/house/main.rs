//! The rules of the repository that the compiler does not check: what tests claim to prove, which module imports from which, how
//! long functions are, what a lean crate depends on, and how texts are written.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod files;
mod lean;
mod limits;
mod lists;
mod modules;
mod places;
mod setters;
mod source;
mod texts;
mod versions;
mod words;
