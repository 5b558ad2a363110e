//! Approval of calls: by a person at the terminal, or by another process.

mod answer;
mod answer_file;
mod later_answers;
mod prepared_answers;
mod question;
mod terminal;
mod typed_input;
mod waiting_session;

pub(crate) use answer::{denial, with_lasting_scope};
pub(crate) use answer_file::AnswerFile;
pub(crate) use later_answers::LaterAnswers;
pub(crate) use prepared_answers::PreparedAnswers;
pub(crate) use question::pending_question;
pub(crate) use terminal::{Screen, TerminalApprover, ask_person};
pub(crate) use waiting_session::WaitingSession;
