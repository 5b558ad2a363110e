//! `toolwit mcp logout`: logs out of an MCP server.

use serde_json::json;

use super::login_server::LoginServerFlags;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::mcp::{Logout, Revocation};

/// Log out of an MCP server
///
/// Removes the stored tokens, and asks their issuer to revoke them.
#[derive(Debug, clap::Args)]
pub(super) struct LogoutCommand {
    #[command(flatten)]
    server: LoginServerFlags,
}

impl LogoutCommand {
    pub(super) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let (config, options) = self.server.find()?;
        let revocation = Logout::new(&config, &options).run().await?;
        if let Revocation::Failed(reason) = &revocation {
            printer.warn(format_args!("the tokens may stay valid until they expire: {reason}"));
        }
        let (had_login, is_revoked) = (revocation != Revocation::NoLogin, revocation == Revocation::Revoked);
        if printer.format() == Format::Json {
            printer.document(&json!({"server": config.name, "existed": had_login, "revoked": is_revoked}))?;
            return Ok(Exit::Success);
        }
        let mut page = Page::new();
        page.text(&config.name).text(": ").text(match (had_login, is_revoked) {
            (false, _) => "there was no login",
            (true, true) => "logged out, and the tokens are revoked",
            (true, false) => "logged out",
        });
        printer.message(page.end());
        Ok(Exit::Success)
    }
}
