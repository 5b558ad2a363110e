//! Reads, prints and answers the calls of a session that wait for an approval.

use serde_json::{Value, json};

use super::question::pending_question;
use crate::input::sessions::SessionFlags;
use crate::output::page::{FAINT, NAME, Page, counted};
use crate::shell::SuggestedCommand;
use toolwit::agent::{JournalError, JournalStore, PendingApproval, SessionId};
use toolwit::tool::{Approval, ApprovalAnswer};
use toolwit::{Error, ErrorKind, Phase};

/// A session with its calls that wait for an approval.
pub(crate) struct WaitingSession {
    pub(crate) session: SessionId,
    /// Whether a process has the session open.
    pub(crate) is_open: bool,
    /// The questions about the calls that wait. A question has an answer if the answer is stored, but the run has not used
    /// it yet.
    pub(crate) approvals: Vec<PendingApproval>,
    /// The options that select the file with the sessions. Suggested commands repeat them.
    session_flags: SessionFlags,
}

impl WaitingSession {
    /// Reads the calls of a session that wait for an approval.
    ///
    /// # Errors
    /// If the session does not exist or cannot be read.
    pub(crate) async fn read(
        store: &dyn JournalStore,
        session: &SessionId,
        session_flags: &SessionFlags,
    ) -> Result<Self, Error> {
        let read_error = |error| match error {
            JournalError::Missing(session) => session_flags.missing_session_error(&session),
            other => Error::from(other),
        };
        Ok(Self {
            session: session.clone(),
            is_open: store.is_open(session).await.map_err(read_error)?,
            approvals: store.pending_approvals(session).await.map_err(read_error)?,
            session_flags: session_flags.clone(),
        })
    }

    /// Returns the questions without a stored answer.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.iter().filter(|pending| pending.answer.is_none())
    }

    /// Returns the open question about a call.
    ///
    /// # Errors
    /// - If no question about the call is open.
    /// - If the number of the open question is not `number`.
    /// - If `number` is `None`, and an earlier question about the call had other content. The user may have read only the
    ///   earlier question.
    pub(crate) fn find(&self, call: &str, number: Option<u64>) -> Result<&PendingApproval, Error> {
        let session = self.session.as_str();
        let list_command = self
            .session_flags
            .add_to_command(SuggestedCommand::new("approvals").operand(session));
        let Some(pending) = self.approvals.iter().find(|pending| pending.question.id == call) else {
            let message = format!("the call `{call}` of the session `{session}` does not wait for an answer");
            return Err(configuration_error(
                message,
                format!("`{list_command}` lists the calls that do"),
            ));
        };
        let hint = || {
            let command = SuggestedCommand::new("approve").operand(session).operand(call);
            let command = command.option("question", &pending.number.to_string());
            let command = self.session_flags.add_to_command(command);
            format!("read it with `{list_command}`, then run `{command}`")
        };
        match number {
            Some(number) if number != pending.number => {
                let message = format!("question {number} about the call `{call}` is not open");
                Err(configuration_error(message, hint()))
            }
            None if pending.has_changed => {
                let message = format!("an earlier question about the call `{call}` had other content");
                Err(configuration_error(message, hint()))
            }
            _ => Ok(pending),
        }
    }

    /// Stores the answer to a question.
    ///
    /// # Errors
    /// If the question has an answer or is no longer open, or if the answer cannot be stored.
    pub(crate) async fn answer(
        &self,
        store: &dyn JournalStore,
        pending: &PendingApproval,
        answer: ApprovalAnswer,
    ) -> Result<(), Error> {
        let call = &pending.question.id;
        let result = store.answer_approval(&self.session, pending.number, answer).await;
        result.map_err(|error| match error {
            JournalError::Answered(..) => configuration_error(
                format!("the call `{call}` has been answered"),
                "the first answer counts".to_owned(),
            ),
            JournalError::NotPending(..) => configuration_error(
                format!("the call `{call}` does not wait any more"),
                "its run continued or ended".to_owned(),
            ),
            other => other.into(),
        })
    }

    /// Writes the session and each of its calls exactly as the call would run. Writes nothing if no call waits.
    pub(crate) fn write(&self, page: &mut Page) {
        if self.approvals.is_empty() {
            return;
        }
        let status = if self.is_open {
            "open in a process"
        } else {
            "interrupted"
        };
        page.gap();
        page.styled(NAME, &self.session)
            .text("  ")
            .styled(
                FAINT,
                format_args!("{}, {status}", counted(self.approvals.len(), "call")),
            )
            .end();
        for pending in &self.approvals {
            page.append(&pending_question(&pending.question));
            if pending.has_changed {
                let number = pending.number;
                write_note(
                    page,
                    "question",
                    &format!("{number}; an earlier question about this call had other content"),
                );
            }
            if let Some(answer) = &pending.answer {
                write_note(page, "answer", &describe_answer(&answer.approval));
            }
        }
    }

    /// Returns the session and its calls as a JSON document.
    pub(crate) fn document(&self) -> Value {
        json!({ "session": self.session, "is_open": self.is_open, "approvals": self.approvals })
    }

    /// Describes the next step after an answer: of the process that has the session open or, without one, of the user.
    pub(crate) fn next_step(&self) -> String {
        if self.is_open {
            return "the process that has the session open continues".to_owned();
        }
        let resume = SuggestedCommand::new("resume").operand(self.session.as_str());
        let resume = self.session_flags.add_to_command(resume);
        format!("`{resume}` continues the run with its stored options")
    }

    /// Returns the commands that answer the first question without an answer, or `None` if every question has an
    /// answer.
    pub(crate) fn answer_commands(&self) -> Option<String> {
        let call = &self.unanswered().next()?.question.id;
        let command = |name| SuggestedCommand::new(name).operand(self.session.as_str()).operand(call);
        let command = |name| self.session_flags.add_to_command(command(name));
        Some(format!("`{}` or `{}`", command("approve"), command("deny")))
    }
}

/// Describes a stored answer.
fn describe_answer(approval: &Approval) -> String {
    match approval {
        Approval::Approved => "allowed".to_owned(),
        Approval::Edited { arguments } => {
            let arguments = serde_json::to_string(arguments).unwrap_or_default();
            format!("allowed with {arguments}")
        }
        Approval::Denied { reason } | Approval::Unanswered { reason } => reason.clone(),
        _ => "decided".to_owned(),
    }
}

fn write_note(page: &mut Page, label: &str, text: &str) {
    page.spaces(2)
        .styled(FAINT, label)
        .spaces(11_usize.saturating_sub(label.len()))
        .text(text)
        .end();
}

fn configuration_error(message: String, hint: String) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint)
}
