//! The host interfaces that a component can import, and the state of these interfaces for one instance.

mod config;
mod environment;
mod files;
mod frozen;
pub(crate) mod host_api;
mod host_objects;
pub(crate) mod host_state;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "without the feature every request is refused")
)]
pub(crate) mod http;
mod keyvalue;
pub(crate) mod log_buffer;
mod logging;
mod near;
mod sockets;
pub(crate) mod wasi;
pub(crate) mod wasi3;
pub(crate) mod wasi_context;
