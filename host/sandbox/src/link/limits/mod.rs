//! The limits that are enforced in a store: on the time, memory, host calls and nested calls of a guest, and on the memory of
//! the host that its resources hold.

pub(crate) mod call_clock;
pub(crate) mod compute_turns;
pub(crate) mod fair_queue;
pub(crate) mod growth_limiter;
pub(crate) mod host_files;
pub(crate) mod host_memory;
pub(crate) mod host_meter;
pub(crate) mod nested_budget;
pub(crate) mod shared_budget;
pub(crate) mod stop_flag;
pub(crate) mod streams_too_large;
pub(crate) mod ticker;
