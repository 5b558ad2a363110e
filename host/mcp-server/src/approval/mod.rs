//! Approval of calls by the user of a client.
//!
//! Up to revision 2025-11-25 the server asks during the call, by elicitation. From 2026-07-28 the call ends with a result that
//! requires input, and the client repeats it with the answer and the state of the question, which the server sealed.

mod approver;
mod form;
mod input_round;
mod question_state;
mod user_channel;

pub(crate) use approver::ClientApprover;
pub(crate) use input_round::InputRound;
pub(crate) use question_state::{QuestionBinding, QuestionStates};
pub(crate) use user_channel::{UserChannel, can_elicit};
