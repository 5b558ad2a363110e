//! `toolwit sessions`: lists, shows, forks and removes stored conversations.

use clap::Subcommand;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::sessions::SessionFlags;
use crate::output::conversation;
use crate::output::page::{FAINT, NAME, Page, WARN, counted};
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::agent::{JournalError, JournalStore, SessionId, SessionSummary, TraceEntry};

const EXAMPLES: &str = "\
Examples:
  toolwit run \"Plan a trip to Rome\" --session rome
  toolwit sessions list
  toolwit sessions show rome
  toolwit sessions fork rome rome-by-train --at 12
  toolwit sessions remove rome";

/// Manage stored conversations
///
/// `toolwit run --session NAME` stores a conversation as it happens, and continues it when it is run again.
/// `toolwit resume NAME` continues a run that was interrupted when its process ended.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    sessions: SessionFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions, the last changed session first
    List,
    /// Show the messages, calls and results of a session, with the number of each entry
    Show {
        /// Name of the session
        session: SessionId,
    },
    /// Create a session from the first entries of another one
    Fork {
        /// Name of the session
        session: SessionId,
        /// Name of the new session
        new: SessionId,
        /// Number of the first entry that is not copied [default: copy all]
        #[arg(long, value_name = "ENTRY")]
        at: Option<u64>,
    },
    /// Remove a session
    Remove {
        /// Name of the session
        session: SessionId,
    },
    /// Accept a sessions file that another user or machine created
    ///
    /// Afterwards, the sessions in the file can be continued, and the approvals in the file apply. Options that start programs, grant
    /// access or choose a server are named when a session is resumed, and must be passed again.
    Accept,
}

impl Sessions {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let store = self.sessions.open().await?;
        let convert = |error| convert_error(error, &self.sessions);
        match self.action {
            Action::List => print_list(&store.sessions().await.map_err(Error::from)?, printer)?,
            Action::Show { session } => print_entries(&store.entries(&session).await.map_err(convert)?, printer)?,
            Action::Fork { session, new, at } => {
                let fork = store.fork(&session, &new, at).await;
                fork.map_err(convert)?;
                print_change(printer, "forked", "created the session", &new)?;
            }
            Action::Remove { session } => {
                store.remove(&session).await.map_err(convert)?;
                print_change(printer, "removed", "removed the session", &session)?;
            }
            Action::Accept => {
                self.sessions.accept().await?;
                print_accepted(printer)?;
            }
        }
        Ok(Exit::Success)
    }
}

/// Converts an error. For a session that does not exist, the suggestion is the command that lists the sessions.
fn convert_error(error: JournalError, sessions: &SessionFlags) -> Error {
    match error {
        JournalError::Missing(session) => sessions.missing_session_error(&session),
        other => other.into(),
    }
}

fn print_list(sessions: &[SessionSummary], printer: Printer) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ "sessions": sessions }));
    }
    if sessions.is_empty() {
        printer.hint("there are no sessions; `toolwit run PROMPT --session NAME` stores one");
        return Ok(());
    }
    let mut page = Page::new();
    for session in sessions {
        page.styled(NAME, &session.session).text("  ");
        if let Some(problem) = &session.problem {
            page.styled(WARN, "unreadable").text("  ").styled(FAINT, problem).end();
            continue;
        }
        page.text(counted(session.turns as usize, "turn"));
        if session.is_interrupted {
            page.text("  ").styled(WARN, "interrupted");
        }
        page.text("  ").styled(FAINT, &session.prompt).end();
    }
    printer.print_page(&page)
}

fn print_entries(entries: &[TraceEntry], printer: Printer) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ "entries": entries }));
    }
    let mut page = Page::new();
    for entry in entries {
        let mut lines = Page::new();
        conversation::write_recorded_event(&mut lines, &entry.event);
        if lines.is_empty() {
            continue;
        }
        page.styled(FAINT, format_args!("{:>4} ", entry.sequence));
        // The entries of an agent have the id of the call in which the agent runs.
        if let Some(parent) = &entry.origin.parent_call {
            page.styled(FAINT, format_args!("[{parent}] "));
        }
        page.append(&lines);
    }
    printer.print_page(&page)
}

fn print_accepted(printer: Printer) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ "accepted": true }));
    }
    let mut page = Page::new();
    page.text("accepted the sessions");
    printer.message(page.end());
    Ok(())
}

/// Prints a change of a session: in JSON as the value of `key`, otherwise after `text`.
fn print_change(printer: Printer, key: &str, text: &str, session: &SessionId) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ key: session }));
    }
    let mut page = Page::new();
    page.text(format_args!("{text} {session}"));
    printer.message(page.end());
    Ok(())
}
