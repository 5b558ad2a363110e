//! Approval of calls: by a person at the terminal, or by another process.

mod answer;
mod given;
mod later;
mod question;
mod store;
mod terminal;
mod typed_input;
mod waiting_session;

pub(crate) use answer::{denial, with_lasting_scope};
pub(crate) use given::PreparedAnswers;
pub(crate) use later::LaterAnswers;
pub(crate) use question::pending_question;
pub(crate) use store::AnswerFile;
pub(crate) use terminal::{Screen, TerminalApprover, ask_person};
pub(crate) use waiting_session::WaitingSession;
