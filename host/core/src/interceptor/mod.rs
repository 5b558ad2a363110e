//! Interceptors: code that decides about the tool calls of a conversation, before and after each call runs.

mod decisions;
mod interception;
#[cfg(test)]
mod tests;

pub use decisions::{CallDecision, CallOutcome, InterceptedCall, Interceptor, OutcomeReview};
pub use interception::Interception;
