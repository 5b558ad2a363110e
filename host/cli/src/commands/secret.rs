//! `toolwit secret`: the store of secrets.

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
use toolwit::sandbox::{SecretError, SecretStore};
use toolwit::{Error, ErrorKind, Phase};

/// The longest value that is taken from standard input.
const VALUE_BYTES_MAX: u64 = 64 << 10;

const EXAMPLES: &str = "\
Examples:
  printf %s \"$KEY\" | toolwit secret set weather-key
  toolwit secret list";

/// Keep the values of secrets, for grants to send
///
/// Values come from standard input, never from the command line, where others could see them; they are never shown again.
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
    /// Keep a value, read from standard input, under a name
    Set {
        /// The name, as grants will have it
        name: String,
    },
    /// List the names
    List,
    /// Forget a value
    Remove {
        /// The name
        name: String,
    },
}

impl Secret {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let store = SecretStore::new(self.secrets.path()?);
        match self.action {
            Action::Set { name } => {
                let value = Zeroizing::new(read_text("-".to_owned(), VALUE_BYTES_MAX, cancel).await?);
                store.set(&name, value.trim_end_matches(['\r', '\n'])).map_err(told)?;
                said(printer, "set", &name)?;
            }
            Action::List => {
                let names = store.names().map_err(told)?;
                if printer.format() == Format::Json {
                    printer.document(&json!({ "secrets": names }))?;
                } else {
                    let mut page = Page::new();
                    for name in names {
                        page.text(name).end();
                    }
                    printer.data(&page)?;
                }
            }
            Action::Remove { name } => {
                let was_there = store.remove(&name).map_err(told)?;
                said(printer, if was_there { "removed" } else { "was not there" }, &name)?;
            }
        }
        Ok(Exit::Success)
    }
}

fn said(printer: Printer, done: &str, name: &str) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({ "secret": name, "done": done }));
    }
    let mut page = Page::new();
    page.text(name).text(": ").text(done).end();
    printer.message(&page);
    Ok(())
}

fn told(error: SecretError) -> Error {
    let message = error.to_string();
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
}
