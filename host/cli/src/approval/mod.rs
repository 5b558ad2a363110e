//! Approval of calls at the terminal.

mod answer;
mod later;
mod question;
mod store;
mod terminal;

pub(crate) use answer::denied;
pub(crate) use later::{GivenAnswers, LaterAnswers};
pub(crate) use question::pending_question;
pub(crate) use store::AnswerFile;
pub(crate) use terminal::{Screen, TerminalApprover};
