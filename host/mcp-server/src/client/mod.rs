//! The client that made a call: its questions to the user, its model, and its log.
//!
//! Up to revision 2025-11-25 the server sends requests during the call. From 2026-07-28 the call ends with a result
//! that requires input, and the client repeats it with the answers and the state of the questions, which the server
//! sealed.

mod client_request;
mod input_round;
mod log_level;
mod mcp_client;
mod outbox;
mod question_state;
mod redeemed_states;
mod task_slot;

pub use client_request::ClientRequest;
pub(crate) use input_round::InputRound;
pub use log_level::LogLevel;
pub use mcp_client::McpClient;
pub(crate) use question_state::{QuestionBinding, QuestionSealer};
pub(crate) use task_slot::TaskSlot;
