//! Interceptors: rules of the operator around every call of the tools of a conversation.

mod decisions;
mod interception;
#[cfg(test)]
mod tests;

pub use decisions::{CallDecision, CallOutcome, InterceptedCall, Interceptor, OutcomeReview};
pub use interception::Interception;
