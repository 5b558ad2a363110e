//! The shipped plugins in the sandbox: what they do with a grant, and that they cannot do it without one.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod declared;
mod files;
mod host;
mod http_fetch;
mod pure;
mod shell;
mod sqlite;
