//! One call of a client.

mod output;
mod run;

pub(crate) use run::{CallOutcome, CallRequest, call};
