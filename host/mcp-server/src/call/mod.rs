//! A call of a tool that a client requested.

mod output;
mod run;

pub(crate) use run::{CallOutcome, CallRequest, call};
