//! `toolwit approve`: allows a call that waits for an approval in a session.

use serde_json::json;

use crate::approval::{WaitingSession, ask_person, pending_question, with_lasting_scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::approvals::can_ask;
use crate::input::call_arguments::read_object;
use crate::input::sessions::SessionFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use tokio_util::sync::CancellationToken;
use toolwit::agent::{JournalStore, PendingApproval, SessionId};
use toolwit::limits::Span;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalScope};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit approve rome                                    asks about each call that waits
  toolwit approve rome call_7
  toolwit approve rome call_7 --arguments '{\"amount\": 5}'
  toolwit approve rome call_7 --scope session
  toolwit approve rome call_7 --scope tool --valid-for 24h";

/// Allow a call that waits for an approval in a session
///
/// The answer is stored at once, and is for exactly the call that `toolwit approvals` shows. If a process runs the
/// session, that process continues; otherwise `toolwit resume` uses the answer. If the terminal of the run also
/// answers, the first answer counts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Approve {
    /// Name of the session
    session: SessionId,
    /// Id of the call; without it, you are asked about each call that waits
    call: Option<String>,
    /// New arguments for the call: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", requires = "call")]
    arguments: Option<String>,
    /// Calls that the answer is valid for
    #[arg(
        long,
        value_name = "SCOPE",
        default_value = "call",
        requires = "call",
        conflicts_with = "arguments"
    )]
    scope: Scope,
    /// Time for which the answer is valid for further calls [default: 30 days for `arguments` and `tool`]
    #[arg(long, value_name = "TIME", requires = "call", conflicts_with = "arguments")]
    valid_for: Option<Span>,
    /// Number of the question; required if an earlier question about the call had other content
    #[arg(long, value_name = "NUMBER", requires = "call")]
    question: Option<u64>,
    #[command(flatten)]
    sessions: SessionFlags,
}

/// The calls that an answer is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scope {
    /// This call only
    Call,
    /// All calls of the tool in this run
    Run,
    /// All calls of the tool in this session
    Session,
    /// All calls of the tool with the same arguments, also in other conversations
    Arguments,
    /// All calls of the tool, also in other conversations
    Tool,
}

impl Approve {
    pub(crate) async fn run(mut self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let store = self.sessions.open_trusted().await?;
        let waiting_session = WaitingSession::read(&store, &self.session, &self.sessions).await?;
        let Some(call) = &self.call else {
            return ask_about_all(&waiting_session, &store, printer).await;
        };
        let pending = waiting_session.find(call, self.question)?;
        let answer = match self.arguments.take() {
            Some(text) => Approval::Edited {
                arguments: read_object(text, cancel).await?,
            }
            .into(),
            None => self.approval_of(pending),
        };
        // The printed question has the arguments with which the call runs.
        let mut allowed_call = pending.clone();
        if let Approval::Edited { arguments } = &answer.approval {
            allowed_call.question.arguments.clone_from(arguments);
        }
        waiting_session.answer(&store, pending, answer).await?;
        print_decision("allowed", &waiting_session, &allowed_call, printer)?;
        Ok(Exit::Success)
    }

    /// Returns an approval of the call, with the scope and the validity that the options select.
    fn approval_of(&self, pending: &PendingApproval) -> ApprovalAnswer {
        let approved = ApprovalAnswer::from(Approval::Approved);
        let answer = match self.scope {
            Scope::Call => approved,
            Scope::Run => approved.with_scope(ApprovalScope::Run),
            Scope::Session => approved.with_scope(ApprovalScope::Session),
            Scope::Arguments => {
                let arguments = pending.question.arguments.clone();
                with_lasting_scope(approved, ApprovalScope::ExactArguments(arguments))
            }
            Scope::Tool => with_lasting_scope(approved, ApprovalScope::Tool),
        };
        match self.valid_for {
            Some(Span(time)) => answer.with_validity(time),
            None => answer,
        }
    }
}

/// Asks the person at the terminal about each call that waits. Stops at the first question that gets no answer.
async fn ask_about_all(
    waiting_session: &WaitingSession,
    store: &dyn JournalStore,
    printer: Printer,
) -> Result<Exit, Failure> {
    let unanswered: Vec<_> = waiting_session.unanswered().collect();
    if unanswered.is_empty() {
        printer.hint(format_args!(
            "no call of the session `{}` waits for an answer",
            waiting_session.session
        ));
        return Ok(Exit::Success);
    }
    if printer.format() == Format::Json || !can_ask() {
        let calls: Vec<_> = unanswered
            .iter()
            .map(|pending| format!("`{}`", pending.question.id))
            .collect();
        let message = "without a terminal or with `--json`, the call must be named";
        let hint = format!("calls that wait: {}", calls.join(", "));
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion(hint)
            .into());
    }
    for pending in unanswered {
        let question = pending_question(&pending.question);
        let answer = ask_person(question, pending.question.arguments.clone()).await;
        match answer.approval {
            Approval::Unanswered { .. } => return Ok(Exit::Stopped),
            _ => waiting_session.answer(store, pending, answer).await?,
        }
    }
    let mut page = Page::new();
    page.text(waiting_session.next_step()).end();
    printer.message(&page);
    Ok(Exit::Success)
}

/// Prints the decision about a call: as JSON, or as text with the call and the next step.
pub(super) fn print_decision(
    decision: &str,
    waiting_session: &WaitingSession,
    pending: &PendingApproval,
    printer: Printer,
) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({
            "session": waiting_session.session, "call": pending.question.id, "question": pending.number,
            "decision": decision, "is_open": waiting_session.is_open,
        }));
    }
    printer.message(&pending_question(&pending.question));
    let mut page = Page::new();
    page.text(decision).text("; ").text(waiting_session.next_step()).end();
    printer.message(&page);
    Ok(())
}
