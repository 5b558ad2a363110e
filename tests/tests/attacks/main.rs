//! Hostile guests and the grants. Each refusal is tested next to its permission, with the same component.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod act;
mod approval_time;
mod conversations;
mod directories;
mod download;
mod files;
mod grants;
mod host;
mod near;
mod nesting;
mod network;
mod policy;
mod process;
mod questions;
mod quotas;
mod reach;
mod responses;
mod running;
mod secrets;
mod server;
mod tls;
mod waiting;
mod wasi3;
