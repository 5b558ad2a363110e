//! The MCP client that made a call: questions to its user and to its model, and messages to its log.
//!
//! Up to revision 2025-11-25, the server sends requests to the client during the call. From revision 2026-07-28, the call
//! ends with a result that contains the requests and a sealed state. The client then repeats the call with the answers
//! and the sealed state.

mod client_request;
mod client_respondent;
mod input_round;
mod log_level;
mod mcp_client;
mod outbox;
mod question_state;
mod redeemed_states;
mod task_slot;

pub use client_request::ClientRequest;
pub(crate) use client_respondent::ClientRespondent;
pub(crate) use input_round::InputRound;
pub(crate) use log_level::level_of_wire;
pub use mcp_client::McpClient;
pub(crate) use question_state::{QuestionBinding, QuestionSealer};
pub(crate) use task_slot::TaskSlot;
