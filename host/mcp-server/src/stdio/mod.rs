//! One client over standard input and output.

mod direct_calls;
mod line_reader;
mod message;
mod serve;
mod standard_streams;
mod tool_call;
mod transport;

pub(crate) use serve::{serve, serve_streams};
