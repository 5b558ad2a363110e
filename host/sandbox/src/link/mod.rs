//! Engines, compiled code and the host interfaces that a component can import.

pub(crate) mod call_clock;
pub(crate) mod code_cache;
pub(crate) mod code_cache_entries;
pub(crate) mod code_cache_location;
#[cfg(test)]
mod code_cache_tests;
pub(crate) mod compile;
pub(crate) mod compile_status;
mod compile_workers;
mod config;
pub(crate) mod engine;
mod environment;
mod files;
mod frozen;
pub(crate) mod growth_limiter;
pub(crate) mod host_api;
mod host_meter;
pub(crate) mod host_state;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "without the feature every request is refused")
)]
pub(crate) mod http;
mod keyvalue;
pub(crate) mod link_once;
pub(crate) mod linked_component;
pub(crate) mod log_buffer;
mod nested_budget;
mod precompiled;
pub(crate) mod stop_flag;
mod ticker;
pub(crate) mod wasi;
