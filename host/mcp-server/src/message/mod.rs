//! Parses the messages of clients.

mod incoming;
mod tool_call;

pub(crate) use incoming::{Incoming, batch_items, beginning_error, error_answer, is_bootstrap, parse, refusal};
