//! Engines, compiled code and the host interfaces that a component can import.

pub(crate) mod code_cache;
#[cfg(test)]
pub(crate) mod code_cache_tests;
pub(crate) mod code_entries;
pub(crate) mod compile_status;
pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod frozen;
pub(crate) mod host_api;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "nothing is sent, and all that is judged is refused")
)]
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod link_once;
pub(crate) mod linked;
pub(crate) mod log;
pub(crate) mod place;
pub(crate) mod precompiled;
pub(crate) mod runtime;
pub(crate) mod ticker;
pub(crate) mod wasi;
pub(crate) mod workers;
