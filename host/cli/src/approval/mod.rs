//! Approval of calls at the terminal.

mod answer;
mod question;
mod store;
mod terminal;

pub(crate) use store::AnswerFile;
pub(crate) use terminal::{Screen, TerminalApprover};
