//! `toolwit secret`: manages the secret store.

use clap::Subcommand;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::input::secrets::SecretFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::limits::SECRET_BYTES_MAX;
use toolwit::sandbox::{SecretError, SecretStore};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  printf %s \"$KEY\" | toolwit secret set weather-key
  toolwit secret list";

/// Manage the secrets that grants refer to
///
/// A value is read from standard input, because other users could see it on a command line. Values are never shown.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Secret {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    secrets: SecretFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Store a value from standard input
    Set {
        /// Name of the secret, as grants use it
        name: String,
    },
    /// List the names of all secrets
    List,
    /// Remove a secret
    Remove {
        /// Name of the secret
        name: String,
    },
}

impl Secret {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let store = SecretStore::new(self.secrets.path()?);
        match self.action {
            Action::Set { name } => {
                let value = Zeroizing::new(read_text("-".to_owned(), SECRET_BYTES_MAX, cancel).await?);
                let is_replaced = store
                    .set(&name, value.trim_end_matches(['\r', '\n']))
                    .map_err(secret_error)?;
                let outcome = if is_replaced { "replaced" } else { "set" };
                print_outcome(printer, outcome, &name)?;
            }
            Action::List => {
                let names = store.names().map_err(secret_error)?;
                if printer.format() == Format::Json {
                    printer.document(&json!({ "secrets": names }))?;
                } else {
                    let mut page = Page::new();
                    for name in names {
                        page.text(name).end();
                    }
                    printer.print_page(&page)?;
                }
            }
            Action::Remove { name } => {
                let existed = store.remove(&name).map_err(secret_error)?;
                let outcome = if existed { "removed" } else { "does not exist" };
                print_outcome(printer, outcome, &name)?;
            }
        }
        Ok(Exit::Success)
    }
}

fn print_outcome(printer: Printer, outcome: &str, name: &str) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ "secret": name, "done": outcome }));
    }
    let mut page = Page::new();
    page.text(name).text(": ").text(outcome).end();
    printer.message(&page);
    Ok(())
}

fn secret_error(error: SecretError) -> Error {
    let message = error.to_string();
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
}
