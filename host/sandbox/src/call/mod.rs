//! Calls into guests. All kinds of calls share the path in [`guarded_call`].

mod async_values;
mod call_access;
pub(crate) mod command;
pub(crate) mod contract_call;
pub(crate) mod dynamic_call;
pub(crate) mod entity_table;
mod follow_up;
pub(crate) mod function;
pub(crate) mod guarded_call;
pub(crate) mod guest_error;
pub(crate) mod instance;
pub(crate) mod interceptor_call;
pub(crate) mod live_calls;
pub(crate) mod plugin;
pub(crate) mod runtime;
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod session_call;
pub(crate) mod session_limits;
mod session_waits;
pub(crate) mod spare_instances;
pub(crate) mod stop;
pub(crate) mod tool;
pub(crate) mod tool_result;
