//! `toolwit mcp`: serves tools to an MCP client over standard input and output.

mod client;
mod client_file;
mod install;
mod json_text;
mod login;
mod login_server;
mod logout;

use clap::Subcommand;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::served_host::{ServedHostFlags, warn_about_broken};
use crate::output::printer::Printer;
use toolwit_mcp_server::{McpServer, Principal};

const EXAMPLES: &str = "\
Examples:
  toolwit mcp --plugins ~/tools
  toolwit mcp install --client claude-desktop --plugins ~/tools --write

An MCP client starts this command itself. Its configuration is:
  {\"mcpServers\": {\"toolwit\": {\"command\": \"toolwit\", \"args\": [\"mcp\", \"--plugins\", \"/path/to/tools\"]}}}";

/// Serve the tools of plugins to an MCP client
///
/// Speaks the Model Context Protocol, revisions 2024-11-05 to 2026-07-28, over standard input and output. Ends when its
/// input ends. Tools are listed at once, and compiled at their first call. A call that needs an approval is shown to
/// the user of the client; it does not run if the client cannot ask.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    host_flags: ServedHostFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    Install(install::Install),
    Login(login::Login),
    Logout(logout::LogoutCommand),
}

impl Mcp {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        match self.action {
            Some(Action::Install(install)) => return install.run(printer),
            Some(Action::Login(login)) => return login.run(printer, cancel).await,
            Some(Action::Logout(logout)) => return logout.run(printer).await,
            None => {}
        }
        let (approvals, content) = (self.host_flags.approval_policy()?, self.host_flags.content()?);
        let host = self.host_flags.build(None).await?;
        warn_about_broken(printer, &host.registry());
        let principal = Principal::new("local", host).with_approvals(approvals);
        let server = McpServer::for_principal(principal).with_content(content);
        server.serve_stdio(cancel.clone()).await?;
        Ok(Exit::Success)
    }
}
