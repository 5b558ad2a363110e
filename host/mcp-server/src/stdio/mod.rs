//! Serves one client over standard input and output, or over two other streams.

mod direct_calls;
mod intake;
mod line_reader;
mod outgoing;
mod serve;
mod standard_streams;
mod stdin_thread;
mod transport;
mod unanswered_requests;

pub(crate) use serve::{serve, serve_streams};
