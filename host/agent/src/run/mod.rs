//! One run: from a user message to its answer.
//!
//! Each stage receives its inputs as arguments and returns its result to the stage above it. Stages never call back.
//!
//! ```text
//! tool_loop ── inference ── prepared_call          the model responds with calls
//!     │
//!     └─────── dispatch ── call_queue ── nested_calls ── child_calls   the calls run
//!                  └────── call_result                  results enter the history and add tools
//! ```
//!
//! A [`SingleCall`] is one call without a model. It uses the same stages as the calls of a response.
//!
//! All stages share the [`RunState`](run_state::RunState), which borrows the conversation.

mod approval_guard;
mod call_queue;
mod call_result;
mod call_start;
mod child_calls;
mod compaction;
mod dispatch;
mod earlier_calls;
mod ending;
mod inference;
mod injection_meter;
mod late_delivery;
mod nested_calls;
mod observed_output;
mod observed_respondent;
mod pictures;
mod prepared_call;
mod recovery;
mod refusal;
mod run_state;
mod single_call;
mod spans;
mod stop;
mod tally;
mod tool_loop;
mod turn_start;

pub(crate) use single_call::{SingleCall, SingleCallStart};
pub(crate) use tool_loop::ToolLoop;
pub(crate) use turn_start::begin_silent_turn;
