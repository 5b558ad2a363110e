//! The approvals of a run.

use std::sync::Arc;

use super::RunProgress;
use crate::approval::{
    AnswerFile, DeferredApprover, PreparedAnswers, TerminalApprover, TerminalRespondent, pending_question,
};
use crate::input::approvals::can_ask;
use crate::input::configuration::data_path;
use crate::input::sessions::SessionFlags;
use crate::output::printer::Printer;
use crate::shell::SuggestedCommand;
use toolwit::agent::{RecordedApprovalRequest, SessionId, StartedReplay, Suspension};
use toolwit::limits::Span;
use toolwit::tool::{Approval, ApprovalMemory, ApprovalPolicy, ApprovalRequest, Approvals, Approver};
use toolwit::{ConversationBuilder, Error, ErrorKind, Phase};

/// Returns the approver of a run: a person at the terminal or, without a terminal, `deferred_approver`. `None` if there
/// is neither.
pub(crate) fn approver(
    progress: &Arc<RunProgress>,
    deferred_approver: Option<&Arc<DeferredApprover>>,
) -> Option<Arc<dyn Approver>> {
    if can_ask() {
        return Some(Arc::new(TerminalApprover::new(progress.clone())));
    }
    deferred_approver.map(|approver| approver.clone() as _)
}

/// Lets the person at the terminal answer the questions of plugins. Without a terminal, they are refused at once.
pub(super) fn with_respondent(builder: ConversationBuilder, progress: &Arc<RunProgress>) -> ConversationBuilder {
    if can_ask() {
        builder.respondent(Arc::new(TerminalRespondent::new(progress.clone())))
    } else {
        builder
    }
}

/// Creates the approver that leaves questions to another process. Returns `None` at a terminal, or without
/// `answer_timeout`. If the timeout is not zero, the approver prints each question while this process waits.
pub(crate) fn deferred_approver(
    answer_timeout: Option<Span>,
    session: &SessionId,
    sessions: &SessionFlags,
    progress: &Arc<RunProgress>,
) -> Option<Arc<DeferredApprover>> {
    let Span(answer_timeout) = answer_timeout.filter(|_| !can_ask())?;
    let (session, sessions, progress) = (session.clone(), sessions.clone(), progress.clone());
    let announce = move |question: &RecordedApprovalRequest| {
        if answer_timeout.is_zero() {
            return;
        }
        let command = SuggestedCommand::new("approve").operand(session.as_str());
        let command = sessions.add_to_command(command.operand(&question.id));
        progress.announce(
            &pending_question(question),
            format_args!("`{command}` allows the call, `toolwit deny` refuses it"),
        );
    };
    Some(Arc::new(DeferredApprover::new(answer_timeout, announce)))
}

/// Waits until all unfinished calls of a run wait for an answer, and the time for an answer has passed. Then suspends
/// the run for a later process, and returns the questions. Waits forever if an argument is `None`.
pub(crate) async fn suspend_for_later(
    deferred_approver: Option<&DeferredApprover>,
    suspension: Option<Suspension>,
) -> Result<Vec<RecordedApprovalRequest>, Error> {
    let (Some(deferred_approver), Some(suspension)) = (deferred_approver, suspension) else {
        return std::future::pending().await;
    };
    let questions = deferred_approver.wait_until_only_questions().await;
    suspension.suspend().await?;
    Ok(questions)
}

/// Prints the open questions of a run. Returns the error with which the command ends, because the run waits for answers.
pub(crate) fn report_waiting_calls(
    session: &SessionId,
    questions: &[RecordedApprovalRequest],
    sessions: &SessionFlags,
    printer: Printer,
) -> Error {
    for question in questions {
        printer.message(&pending_question(question));
    }
    let calls: Vec<_> = questions.iter().map(|question| format!("`{}`", question.id)).collect();
    let message = match calls.as_slice() {
        [call] => format!("the run waits for your answer about the call {call}"),
        calls => format!("the run waits for your answers about the calls {}", calls.join(", ")),
    };
    let first_call = questions.first().map_or("CALL", |question| question.id.as_str());
    let command = SuggestedCommand::new("resume")
        .operand(session.as_str())
        .option("allow", first_call);
    let command = sessions.add_to_command(command);
    Error::new(ErrorKind::Denied, Phase::Validate, message).with_suggestion(format!(
        "`{command}` continues the run, or `--deny {first_call}=REASON`; `toolwit approve` stores an answer in advance"
    ))
}

/// Returns the approvals of a run. They use the remembered answers of earlier runs. Then `answers` decides or, by
/// default, a person at the terminal.
pub(super) fn approvals(
    policy: ApprovalPolicy,
    progress: &Arc<RunProgress>,
    answers: Option<PreparedAnswers>,
) -> Approvals {
    let memory = match data_path("approvals.json") {
        Some(path) => ApprovalMemory::stored_in(Arc::new(AnswerFile::new(path))),
        None => ApprovalMemory::new(),
    };
    let approvals = Approvals::new(policy).with_memory(memory);
    approvals.with_approver(answers.unwrap_or_else(|| PreparedAnswers::new(approver(progress, None))))
}

/// Returns the approvals of a replay with a fork: before the fork the recorded decisions apply, after it a person at
/// the terminal is asked. Without a terminal, the questions after the fork stay unanswered.
pub(super) fn forked_approvals(
    policy: ApprovalPolicy,
    progress: &Arc<RunProgress>,
    replay: &StartedReplay,
) -> Approvals {
    let approver: Arc<dyn Approver> = if can_ask() {
        Arc::new(TerminalApprover::new(progress.clone()))
    } else {
        Arc::new(|_: &ApprovalRequest| Approval::Unanswered {
            reason: "no person can be asked".to_owned(),
        })
    };
    Approvals::new(policy).with_approver(replay.approver(approver))
}
