//! The commands for a run that an earlier process did not finish: `/resume`, `/approve`, `/deny` and `/resolve`.

use super::ChatSession;
use crate::approval::{denial, pending_question};
use crate::commands::resume::{CallDecision, print_unresolved, store_denial, unanswered_questions};
use crate::exit::Exit;
use crate::output::page::{FAINT, Page};
use toolwit::agent::{Conversation, RecordedApprovalRequest};
use toolwit::tool::Approval;
use toolwit::{Error, ErrorKind, Phase};

impl ChatSession<'_> {
    /// If the last run of the session did not end, shows the calls and questions that need a decision.
    pub(super) async fn show_interrupted_run(&self, conversation: &Conversation) {
        let Some(run) = conversation.interrupted_run() else {
            return;
        };
        print_unresolved(&run.unresolved(), self.printer);
        let questions = self.open_questions(conversation).await;
        for question in &questions {
            self.printer.message(&pending_question(question));
        }
        let next_step = match (run.unresolved().is_empty(), questions.is_empty()) {
            (false, _) => "find out whether these calls took effect, then decide with /resolve",
            (true, false) => "/approve allows the call, /deny does not, /resume asks again",
            (true, true) => "/resume continues it",
        };
        self.printer
            .hint(format_args!("the last run of this session did not end; {next_step}"));
    }

    /// Continues the interrupted run. If calls or questions need a decision first, shows them instead.
    pub(super) async fn resume(&self, conversation: &mut Conversation) -> Exit {
        let Some(run) = conversation.interrupted_run() else {
            return self.print(Err(nothing_to_resume_error()));
        };
        let has_unresolved_calls = !run.unresolved().is_empty();
        if has_unresolved_calls || (self.requires_prior_answers && !self.open_questions(conversation).await.is_empty())
        {
            self.show_interrupted_run(conversation).await;
            return Exit::UsageOrConfiguration;
        }
        run.calls_to_run_again()
            .into_iter()
            .for_each(|call| self.answers.allow_rerun(call));
        let turn_cancel = self.interrupts.begin_turn();
        match conversation.resume_run(turn_cancel).await {
            Some(outcome) => self.end_turn(outcome),
            None => self.print(Err(nothing_to_resume_error())),
        }
    }

    /// Allows the call with this id or, if the id is empty, the only call that waits for an answer. After the last answer,
    /// continues the run.
    pub(super) async fn approve(&self, call: &str, conversation: &mut Conversation) -> Exit {
        let questions = self.open_questions(conversation).await;
        match question_about(call, &questions).or_else(|| single_question(&questions).filter(|_| call.is_empty())) {
            Some(question) => self.answer(question, Approval::Approved, conversation).await,
            None => self.print(Err(no_answerable_call_error(call, &questions))),
        }
    }

    /// Denies a call. If the first word of the text is the id of a call that waits for an answer, the text after the id is
    /// the reason. Otherwise, denies the only call that waits, and the complete text is the reason.
    pub(super) async fn deny(&self, text: &str, conversation: &mut Conversation) -> Exit {
        let questions = self.open_questions(conversation).await;
        let (call, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let selected = match question_about(call, &questions) {
            Some(question) => Some((question, reason)),
            None => single_question(&questions).map(|question| (question, text)),
        };
        match selected {
            Some((question, reason)) => self.answer(question, denial(reason), conversation).await,
            None => self.print(Err(no_answerable_call_error("", &questions))),
        }
    }

    /// Stores the answer to a question in memory for the run. If it was the last open question, continues the run;
    /// otherwise, shows the remaining questions.
    async fn answer(
        &self,
        question: &RecordedApprovalRequest,
        approval: Approval,
        conversation: &mut Conversation,
    ) -> Exit {
        if let (Approval::Denied { .. }, Some((store, session))) = (&approval, &self.stored_session)
            && let Err(error) = store_denial(question, approval.clone(), store, session).await
        {
            self.printer.print_error(&error);
        }
        self.answers.add_answer(question.clone(), approval);
        if self.open_questions(conversation).await.is_empty() {
            return self.resume(conversation).await;
        }
        self.show_interrupted_run(conversation).await;
        Exit::Success
    }

    /// Returns the questions of the interrupted run that have no answer, neither in this chat nor in the store. If the
    /// store cannot be read, prints the error and does not consider its answers.
    async fn open_questions(&self, conversation: &Conversation) -> Vec<RecordedApprovalRequest> {
        let run = conversation.interrupted_run();
        let questions = run.into_iter().flat_map(|run| run.pending_approvals());
        let questions = questions.filter(|question| !self.answers.contains(&question.id));
        let questions: Vec<_> = questions.cloned().collect();
        let Some((store, session)) = &self.stored_session else {
            return questions;
        };
        match unanswered_questions(&questions, store, session).await {
            Ok(unanswered) => unanswered,
            Err(error) => {
                self.printer.print_error(&error);
                questions
            }
        }
    }
}

fn question_about<'q>(call: &str, questions: &'q [RecordedApprovalRequest]) -> Option<&'q RecordedApprovalRequest> {
    questions.iter().find(|question| question.id == call)
}

fn single_question(questions: &[RecordedApprovalRequest]) -> Option<&RecordedApprovalRequest> {
    match questions {
        [question] => Some(question),
        _ => None,
    }
}

/// Executes `/resolve`: stores the user's decision whether a call took effect. The text is `CALL done`, `CALL not-done` or
/// `CALL run-again`.
///
/// # Errors
/// If the text is not a decision, or the call does not need a decision.
pub(super) fn resolve(text: &str, conversation: &mut Conversation) -> Result<Page, Error> {
    let invalid = |message: &str| {
        Error::new(ErrorKind::Configuration, Phase::Registry, message.to_owned())
            .with_suggestion("write `/resolve CALL done`, `/resolve CALL not-done` or `/resolve CALL run-again`")
    };
    // `CallDecision` parses the form of `toolwit resume --resolve`, which is `CALL=done`.
    let words: Vec<_> = text.split_whitespace().collect();
    let decision = words.join("=").parse::<CallDecision>();
    let decision = decision.map_err(|_| invalid("this is not a decision about a call"))?;
    if !conversation.resolve_call(&decision.call, decision.resolution) {
        return Err(invalid(&format!("the call `{}` needs no decision", decision.call)));
    }
    let mut page = Page::new();
    page.styled(FAINT, "decided; /resume continues the run").end();
    Ok(page)
}

/// Returns the error for a message that the user sends although the last run did not end.
pub(super) fn interrupted_run_error() -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        "the last run of this session did not end",
    )
    .with_suggestion("`/resume` continues it; the message was not sent")
}

fn nothing_to_resume_error() -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        "this session has no interrupted run",
    )
}

fn no_answerable_call_error(call: &str, questions: &[RecordedApprovalRequest]) -> Error {
    if questions.is_empty() {
        let message = "no call waits for an answer";
        return Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("the chat asks you when a call needs your approval");
    }
    let calls: Vec<_> = questions.iter().map(|question| format!("`{}`", question.id)).collect();
    let message = if call.is_empty() {
        "several calls wait for an answer".to_owned()
    } else {
        format!("the call `{call}` does not wait for an answer")
    };
    let hint = format!("name one of {} after the command", calls.join(", "));
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint)
}
