//! One call of a guest: its instance, its limits, its session and its result.

pub(crate) mod answer;
pub(crate) mod command;
pub(crate) mod dynamic_call;
pub(crate) mod fault;
pub(crate) mod instance;
pub(crate) mod limiter;
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod session_registry;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod tally;
pub(crate) mod tool;
