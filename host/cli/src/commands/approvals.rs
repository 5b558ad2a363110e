//! `toolwit approvals`: lists the calls that wait for an approval.

use serde_json::json;

use crate::approval::WaitingSession;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::sessions::SessionFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::agent::{JournalStore, SessionId};
use toolwit::journal::SqliteJournalStore;

const EXAMPLES: &str = "\
Examples:
  toolwit approvals
  toolwit approvals rome
  toolwit approve rome call_7
  toolwit deny rome call_7 --reason \"not that one\"";

/// List the calls that wait for an approval, of all sessions or one
///
/// Each call is shown exactly as it would run: its tool, its arguments and the grants that it would use.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListApprovals {
    /// Name of the session [default: all sessions]
    session: Option<SessionId>,
    #[command(flatten)]
    sessions: SessionFlags,
}

impl ListApprovals {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let store = self.sessions.open().await?;
        let waiting_sessions = match &self.session {
            Some(session) => vec![WaitingSession::read(&store, session, &self.sessions).await?],
            None => read_waiting_sessions(&store, &self.sessions).await?,
        };
        if printer.format() == Format::Json {
            let documents: Vec<_> = waiting_sessions.iter().map(WaitingSession::document).collect();
            printer.document(&json!({ "sessions": documents }))?;
            return Ok(Exit::Success);
        }
        let mut page = Page::new();
        waiting_sessions.iter().for_each(|session| session.write(&mut page));
        printer.print_page(&page)?;
        match waiting_sessions.iter().find_map(WaitingSession::answer_commands) {
            Some(commands) => printer.hint(format_args!("{commands} answers the first question")),
            None if page.is_empty() => printer.hint("no call waits for an approval"),
            None => {}
        }
        Ok(Exit::Success)
    }
}

/// Reads the sessions in which calls wait. Only a session whose last run did not end can have such calls.
async fn read_waiting_sessions(
    store: &SqliteJournalStore,
    sessions: &SessionFlags,
) -> Result<Vec<WaitingSession>, Error> {
    let mut waiting_sessions = Vec::new();
    for summary in store.sessions().await.map_err(Error::from)? {
        if summary.is_interrupted {
            waiting_sessions.push(WaitingSession::read(store, &summary.session, sessions).await?);
        }
    }
    waiting_sessions.retain(|session| !session.approvals.is_empty());
    Ok(waiting_sessions)
}
