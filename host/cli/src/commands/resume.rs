//! `toolwit resume`: continues a run that was interrupted when its process ended.

use std::str::FromStr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::approval::{PreparedAnswers, denial};
use crate::commands::run::{
    RunFlags, RunProgress, approver, deferred_approver, next_run_command, print_end_in_session, report_waiting_calls,
    suspend_for_later,
};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::approvals::can_ask;
use crate::input::sessions::SessionFlags;
use crate::output::page::{FAINT, NAME, Page};
use crate::output::printer::Printer;
use crate::shell::SuggestedCommand;
use toolwit::agent::{
    ChildCall, Journal, JournalError, JournalStore, PendingApproval, RecordedApprovalRequest, Resolution, SessionId,
    UnresolvedCall,
};
use toolwit::journal::SqliteJournalStore;
use toolwit::limits::Span;
use toolwit::tool::Approval;
use toolwit::{Conversation, Error, ErrorKind, Phase};

/// Maximum number of calls that are shown below the call inside which they began.
const CHILDREN_SHOWN: usize = 20;

const EXAMPLES: &str = "\
Examples:
  toolwit resume rome
  toolwit resume rome --resolve call_7=done
  toolwit resume rome --resolve call_7=run-again
  toolwit resume rome --allow call_8 --deny call_9=\"not that one\"
  toolwit resume rome --model anthropic:claude-sonnet-4-5";

/// Continue a run that was interrupted
///
/// The process of `toolwit run --session` or `toolwit chat --session` ended before the answer: it crashed, it was
/// killed, or it left a call that waits for an approval. The run continues where it stopped. Calls that ended are not
/// repeated.
///
/// A call that was running and that may have changed something is listed: find out whether it did, and decide with
/// `--resolve`. `run-again` also approves it, unless the plugin or its grant has changed. A call that waits for an
/// approval is shown: answer at the terminal, with `--allow` or `--deny`, or in advance with `toolwit approve`.
///
/// The MCP servers whose tools the run had are started again. If the tool of such a call is gone, the run stays as it is
/// and can be resumed later; or deny the call, or decide with `--resolve` that it did not take effect.
///
/// The model, the plugins and the other options are those of the run, unless an option of this command replaces them.
/// Pass `--wasi-p3` again, and also an `--approve` mode that requires fewer approvals than the policy: these two are not
/// restored. Keys come from the environment, and grants files are read again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Resume {
    /// Name of the session
    session: SessionId,
    /// Decision about a call that was running: CALL=done, CALL=not-done or CALL=run-again; can be repeated
    #[arg(long = "resolve", value_name = "CALL=DECISION")]
    decisions: Vec<CallDecision>,
    /// Call that waits for an approval and may run; can be repeated
    #[arg(long, value_name = "CALL")]
    allow: Vec<String>,
    /// Call that waits for an approval and must not run; the model reads the reason; can be repeated
    #[arg(long, value_name = "CALL[=REASON]")]
    deny: Vec<String>,
    /// Time to wait for `toolwit approve` if a further call needs an approval and there is no terminal; then the command
    /// ends, and another `toolwit resume` continues the run
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "0s")]
    ask_later: Option<Span>,
    #[command(flatten)]
    flags: RunFlags,
}

/// A decision about a call that was running when its process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDecision {
    pub(crate) call: String,
    pub(crate) resolution: Resolution,
}

impl FromStr for CallDecision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let usage = || "write CALL=done, CALL=not-done or CALL=run-again".to_owned();
        let (call, decision) = text.rsplit_once('=').ok_or_else(usage)?;
        let resolution = match decision {
            "done" => Resolution::Done,
            "not-done" => Resolution::NotDone,
            "run-again" => Resolution::RunAgain,
            _ => return Err(usage()),
        };
        Ok(Self {
            call: call.to_owned(),
            resolution,
        })
    }
}

impl Resume {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let store = self.flags.sessions.open_trusted().await?;
        let journal = Journal::open(&store, &self.session)
            .await
            .map_err(|error| match error {
                JournalError::Missing(session) => self.flags.sessions.missing_session_error(&session),
                other => other.into(),
            })?;
        let flags = self
            .flags
            .with_ask_later(self.ask_later)
            .with_session_options(Some(&journal), printer)?;
        let model = flags.connect(cancel).await?;
        let progress = Arc::new(RunProgress::new(printer, model.name()));
        let answer_timeout = flags.options.ask_later;
        let deferred_approver = deferred_approver(answer_timeout, &self.session, &flags.sessions, &progress);
        let answers = PreparedAnswers::new(approver(&progress, deferred_approver.as_ref()));
        let waits_for_answer = answer_timeout.is_some_and(|Span(time)| !time.is_zero());
        let sessions = flags.sessions.clone();
        // If no person can be asked during the run, all its open questions must have an answer before it continues.
        let requires_prior_answers = !can_ask() && !waits_for_answer && !flags.allows_every_call();
        let flags = flags.with_approvers(answers.clone(), deferred_approver.clone());
        let mut conversation = flags
            .build_conversation(&model, Some(journal), progress, cancel)
            .await?;
        apply_decisions(&mut conversation, &self.decisions)?;
        let Some(run) = conversation.interrupted_run() else {
            return Err(nothing_to_resume_error(&self.session, &sessions).into());
        };
        let unresolved = run.unresolved();
        if !unresolved.is_empty() {
            print_unresolved(&unresolved, printer);
            return Err(undecided_error(&self.session, &unresolved, &sessions).into());
        }
        run.calls_to_run_again()
            .into_iter()
            .for_each(|call| answers.allow_rerun(call));
        let questions = unanswered_questions(run.pending_approvals(), &store, &self.session).await?;
        let unanswered = apply_answers(&questions, &answers, &self.allow, &self.deny)?;
        for question in &questions {
            if let Some(denial) = answers.denial_of(&question.id) {
                store_denial(question, denial, &store, &self.session).await?;
            }
        }
        if requires_prior_answers && !unanswered.is_empty() {
            return Err(report_waiting_calls(&self.session, &unanswered, &sessions, printer).into());
        }
        let suspension = conversation.suspension();
        let outcome = tokio::select! {
            biased;
            outcome = conversation.resume_run(cancel.clone()) => Ok(outcome),
            questions = suspend_for_later(deferred_approver.as_deref(), suspension) => Err(questions?),
        };
        // Removes the spinner before the answer is printed.
        drop(conversation);
        match outcome {
            Ok(Some(outcome)) => print_end_in_session(outcome, &self.session, &sessions, &*model, printer),
            Ok(None) => Err(nothing_to_resume_error(&self.session, &sessions).into()),
            Err(questions) => Err(report_waiting_calls(&self.session, &questions, &sessions, printer).into()),
        }
    }
}

fn apply_decisions(conversation: &mut Conversation, decisions: &[CallDecision]) -> Result<(), Error> {
    for decision in decisions {
        if !conversation.resolve_call(&decision.call, decision.resolution) {
            let message = format!("the call `{}` needs no decision", decision.call);
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("run the command without `--resolve` to see the calls that do"));
        }
    }
    Ok(())
}

/// Returns those of the `questions` that are open in the store, and that no other process has answered.
pub(crate) async fn unanswered_questions(
    questions: &[RecordedApprovalRequest],
    store: &SqliteJournalStore,
    session: &SessionId,
) -> Result<Vec<RecordedApprovalRequest>, Error> {
    // The store also returns questions that have an answer which no run has used yet.
    let pending = store.pending_approvals(session).await?;
    let unanswered = || pending.iter().filter(|pending| pending.answer.is_none());
    let is_open = |question: &&RecordedApprovalRequest| unanswered().any(|open| open.question.id == question.id);
    Ok(questions.iter().filter(is_open).cloned().collect())
}

/// Stores a denial, like `toolwit deny`. The model then reads its reason even if the tool of the call is gone.
pub(crate) async fn store_denial(
    question: &RecordedApprovalRequest,
    denial: Approval,
    store: &SqliteJournalStore,
    session: &SessionId,
) -> Result<(), Error> {
    let pending = store.pending_approvals(session).await?;
    let is_unanswered = |pending: &&PendingApproval| pending.question.id == question.id && pending.answer.is_none();
    if let Some(pending) = pending.iter().find(is_unanswered) {
        store.answer_approval(session, pending.number, denial.into()).await?;
    }
    Ok(())
}

/// Adds the answers of the command line to `answers`. Returns the questions that the command line does not answer.
///
/// # Errors
/// If an answer is about a call that does not wait, or a second answer is about the same call.
fn apply_answers(
    questions: &[RecordedApprovalRequest],
    answers: &PreparedAnswers,
    allowed: &[String],
    denied: &[String],
) -> Result<Vec<RecordedApprovalRequest>, Error> {
    let mut unanswered = questions.to_vec();
    let allowed = allowed.iter().map(|call| (call.as_str(), Approval::Approved));
    let denied = denied.iter().map(|text| {
        let (call, reason) = text.split_once('=').unwrap_or((text, ""));
        (call, denial(reason))
    });
    for (call, approval) in allowed.chain(denied) {
        let Some(index) = unanswered.iter().position(|question| question.id == call) else {
            return Err(unusable_answer_error(call, questions));
        };
        answers.add_answer(unanswered.remove(index), approval);
    }
    Ok(unanswered)
}

/// Returns the error for an answer about a call that does not wait, or for the second answer about the same call.
fn unusable_answer_error(call: &str, questions: &[RecordedApprovalRequest]) -> Error {
    let (message, hint) = if questions.iter().any(|question| question.id == call) {
        let message = format!("the options have more than one answer about the call `{call}`");
        (message, "pass `--allow` or `--deny` only once for each call")
    } else {
        let message = format!("the call `{call}` does not wait for an answer");
        let hint = "run the command without `--allow` and `--deny` to see the calls that do";
        (message, hint)
    };
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint)
}

/// Prints the calls that were running when their process ended, with the calls that began inside them. Their effects are
/// unknown.
pub(crate) fn print_unresolved(unresolved: &[UnresolvedCall], printer: Printer) {
    let mut page = Page::new();
    for call in unresolved {
        let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
        page.styled(NAME, &call.name).text(" ").text(arguments);
        page.text("  ").styled(FAINT, format_args!("call {}", call.id)).end();
        write_children(&mut page, &call.children);
    }
    printer.message(&page);
}

/// Writes the calls that began inside an unresolved call and can have changed something.
fn write_children(page: &mut Page, children: &[ChildCall]) {
    let children: Vec<_> = children.iter().filter(|child| child.can_have_effect()).collect();
    for child in children.iter().take(CHILDREN_SHOWN) {
        write_child(page, child);
    }
    let more = children.len().saturating_sub(CHILDREN_SHOWN);
    if more > 0 {
        let hint = format!("  and {more} more calls, which `toolwit sessions show` lists");
        page.styled(FAINT, hint).end();
    }
}

/// Writes a call that began inside an unresolved call, with its parent and whether it ended.
fn write_child(page: &mut Page, child: &ChildCall) {
    let arguments = serde_json::to_string(&child.arguments).unwrap_or_default();
    page.text("  ").styled(NAME, &child.tool).text(" ").text(arguments);
    let class = child
        .effect
        .map(|effect| format!("{}, ", effect.class))
        .unwrap_or_default();
    let end = match child.is_error {
        None => "began and did not end",
        Some(false) => "ended",
        Some(true) => "failed",
    };
    let details = format!("{class}{end}, call {} of {}", child.id, child.parent);
    page.text("  ").styled(FAINT, details).end();
}

fn undecided_error(session: &SessionId, unresolved: &[UnresolvedCall], sessions: &SessionFlags) -> Error {
    let calls: Vec<_> = unresolved.iter().map(|call| format!("`{}`", call.id)).collect();
    let message = format!(
        "the process ended while calls ran that may have changed something: {}",
        calls.join(", ")
    );
    let first_call = unresolved.first().map_or("CALL", |call| call.id.as_str());
    let command = SuggestedCommand::new("resume")
        .operand(session.as_str())
        .option("resolve", &format!("{first_call}=done"));
    let command = sessions.add_to_command(command);
    let hint = format!("find out whether they did, then run `{command}` (or `=not-done`, or `=run-again`)");
    Error::new(ErrorKind::Configuration, Phase::Execute, message).with_suggestion(hint)
}

fn nothing_to_resume_error(session: &SessionId, sessions: &SessionFlags) -> Error {
    let message = format!("the last run of the session `{session}` ended");
    let hint = format!(
        "continue the conversation with `{}`",
        next_run_command(session, sessions)
    );
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint)
}
