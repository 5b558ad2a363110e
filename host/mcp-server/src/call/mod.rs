//! A call of a tool that a client requested.

mod output;
mod record;
mod run;

pub(crate) use record::{CallRecord, RecordedCall};
pub(crate) use run::{CallOutcome, CallRequest, call};
