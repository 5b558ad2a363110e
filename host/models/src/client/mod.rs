//! The client that all providers share: it sends a request, reads the response in pieces and retries.
//!
//! The module of each API implements [`Dialect`], which creates the body of a request, and [`ResponseReader`], which reads a
//! response.

mod builder;
mod dialect;
mod message_parts;
mod model_client;
mod model_names;
mod response_body;
mod tool_call_id;

pub use builder::ClientBuilder;
pub(super) use dialect::{ApiProfile, Dialect, ReaderState, ResponseReader, default_max_tokens};
pub(super) use message_parts::{MessagePart, message_parts};
pub use model_client::ModelClient;
pub(super) use model_names::is_openai_reasoning_model;
pub(super) use tool_call_id::CallIdForm;

#[cfg(test)]
pub(super) mod testing;
