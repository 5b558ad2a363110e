//! Interceptors: plugins that wrap the calls of other tools.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod coverage;
mod host;
mod quota;
mod redact;
mod traps;
