//! Questions to a person: approvals of calls, by a person at the terminal, by answers given in advance, or by another process; and
//! the forms of plugins.

mod answer;
mod answer_file;
mod deferred_approver;
mod form_entry;
mod prepared_answers;
mod question;
mod terminal;
mod terminal_respondent;
mod typed_input;
mod waiting_session;

pub(crate) use answer::{denial, with_lasting_scope};
pub(crate) use answer_file::AnswerFile;
pub(crate) use deferred_approver::DeferredApprover;
pub(crate) use prepared_answers::PreparedAnswers;
pub(crate) use question::pending_question;
pub(crate) use terminal::{NoScreen, Screen, TerminalApprover, ask_person};
pub(crate) use terminal_respondent::TerminalRespondent;
pub(crate) use waiting_session::WaitingSession;
