//! Commands and options that fix an error of the library.
//!
//! The library names settings and APIs, because it does not know who embeds it. This module is the only one that translates
//! its errors into what a person types.

use toolwit::{Error, ErrorKind};

/// Returns the option that raises the limit which an error reports.
pub(crate) fn limit_option(error: &Error) -> Option<&'static str> {
    let limit = error.limit.as_ref()?.limit;
    match (error.kind, limit) {
        (ErrorKind::LoopLimit, "iterations_max") => Some("--max-iterations"),
        (ErrorKind::LoopLimit, _) => None,
        (_, "fuel_max") => Some("--fuel"),
        (_, "wall_ms_max") => Some("--timeout"),
        (_, "memory_bytes_max") => Some("--memory"),
        (_, "result_bytes_max") => Some("--result-bytes"),
        (_, "nested_calls_max") => Some("--nested-calls"),
        (_, "nested_depth_max") => Some("--nested-depth"),
        _ => None,
    }
}
