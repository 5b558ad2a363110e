//! One run: from a user message to its answer.
//!
//! Each stage receives its inputs as arguments and returns its result to the stage above it. Stages never call back.
//!
//! ```text
//! tool_loop ── inference ── prepared_call          the model responds with calls
//!     │
//!     └─────── dispatch ── call_queue ── nested_calls   the calls run
//!                  └────── call_result                  results enter the history and add tools
//! ```
//!
//! All stages share the [`RunState`](run_state::RunState), which borrows the conversation.

mod call_queue;
mod call_result;
mod call_start;
mod dispatch;
mod earlier_calls;
mod ending;
mod inference;
mod late_calls;
mod loop_guard;
mod nested_calls;
mod observed_output;
mod prepared_call;
mod recovery;
mod refusal;
mod run_state;
mod stop;
mod tally;
mod tool_loop;

pub(crate) use tool_loop::ToolLoop;
