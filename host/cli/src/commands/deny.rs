//! `toolwit deny`: denies a call that waits for an approval in a session.

use super::approve::print_decision;
use crate::approval::{WaitingSession, denial};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::sessions::SessionFlags;
use crate::output::printer::Printer;
use toolwit::agent::SessionId;

const EXAMPLES: &str = "\
Examples:
  toolwit deny rome call_7
  toolwit deny rome call_7 --reason \"not that one\"";

/// Deny a call that waits for an approval in a session
///
/// The call does not run, and the model reads the reason. `toolwit approvals` lists the calls that wait.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Deny {
    /// Name of the session
    session: SessionId,
    /// Id of the call
    call: String,
    /// Reason for the denial, which the model reads
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Number of the question; required if an earlier question about the call had other content
    #[arg(long, value_name = "NUMBER")]
    question: Option<u64>,
    #[command(flatten)]
    sessions: SessionFlags,
}

impl Deny {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let store = self.sessions.open_trusted().await?;
        let waiting_session = WaitingSession::read(&store, &self.session, &self.sessions).await?;
        let pending = waiting_session.find(&self.call, self.question)?;
        waiting_session
            .answer(&store, pending, denial(&self.reason).into())
            .await?;
        print_decision("denied", &waiting_session, pending, printer)?;
        Ok(Exit::Success)
    }
}
