//! Interceptors: code that decides on every tool call of a conversation, before and after the call runs.

mod decisions;
mod interception;
#[cfg(test)]
mod tests;

pub use decisions::{CallDecision, CallOutcome, InterceptedCall, Interceptor, OutcomeReview};
pub use interception::Interception;
