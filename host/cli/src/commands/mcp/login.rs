//! `toolwit mcp login`: logs in to an MCP server.

use std::process::Stdio;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::login_server::LoginServerFlags;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer};
use toolwit::limits::Span;
use toolwit::mcp::{LoginReport, LoginRequest, PendingLogin};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit mcp login docs
  toolwit mcp login docs --open
  toolwit mcp login docs --scope docs.write";

/// The program that opens an address in the browser of the user, with its first arguments.
const BROWSER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("rundll32", &["url.dll,FileProtocolHandler"])
} else {
    ("xdg-open", &[])
};

/// Log in to an MCP server in a browser
///
/// For an MCP server over HTTP that requires OAuth. Prints the address of the login, and waits until the browser is
/// redirected to a port of 127.0.0.1. The tokens are stored in the user's data directory, renewed if the server allows
/// this, and sent to this server only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Login {
    #[command(flatten)]
    server: LoginServerFlags,
    /// Additional scope to request; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Port of 127.0.0.1 to which the browser is redirected [default: a free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open the browser
    #[arg(long)]
    open: bool,
}

impl Login {
    pub(super) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let (config, options) = self.server.find()?;
        let login = async {
            let request = LoginRequest::new(&config, &options).scopes(self.scopes).port(self.port);
            let login = request.begin().await?;
            print_pending_login(printer, &config.name, &login);
            if self.open {
                open_browser(printer, login.url().as_str());
            }
            login.finish().await
        };
        let report = tokio::select! {
            report = login => report?,
            () = cancel.cancelled() => {
                let message = "the login was interrupted";
                return Err(Error::new(ErrorKind::Cancelled, Phase::Load, message).into());
            }
        };
        print_report(printer, &config.name, &report)?;
        Ok(Exit::Success)
    }
}

/// Prints the issuer, the server, the scopes and the address of the login.
fn print_pending_login(printer: Printer, server: &str, login: &PendingLogin) {
    let mut page = Page::new();
    page.text("log in to ").text(login.issuer()).text(" for ").text(server);
    if !login.scopes().is_empty() {
        page.text(", with the scopes ").text(login.scopes().join(" "));
    }
    page.text(":").end().gap();
    page.text(login.url()).end().gap();
    page.styled(FAINT, "waiting for the browser; stop with Ctrl-C").end();
    printer.message(&page);
}

/// Opens the address in a browser. No shell interprets the address, which is one argument of a program.
fn open_browser(printer: Printer, url: &str) {
    let (program, arguments) = BROWSER;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        printer.warn(format_args!("the browser cannot be opened with `{program}`: {error}"));
    }
}

fn print_report(printer: Printer, server: &str, report: &LoginReport) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({
            "server": server,
            "issuer": report.issuer,
            "scopes": report.scopes,
            "valid_seconds": report.validity.map(|validity| validity.as_secs()),
            "renewable": report.is_renewable,
        }));
    }
    let mut page = Page::new();
    page.text("logged in to ").text(server);
    if !report.is_renewable {
        match report.validity {
            Some(validity) => page.text(format_args!(", for {}", Span(validity))),
            None => page.text(", until the server refuses the token"),
        };
    }
    printer.message(page.end());
    Ok(())
}
