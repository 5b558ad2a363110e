//! `toolwit man`: writes man pages.

use std::path::PathBuf;

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit man ~/.local/share/man/man1
  toolwit man . && man ./toolwit-call.1";

/// Write the man pages of all commands
///
/// Writes a page for each command, such as `toolwit-call.1`. Creates the directory if it does not exist.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Directory to write the pages to
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(self, printer: Printer, definition: clap::Command) -> Result<Exit, Failure> {
        let result = std::fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(definition, &self.directory));
        result.map_err(|error| {
            let message = format!(
                "the man pages cannot be written to {}: {error}",
                self.directory.display()
            );
            Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
        })?;
        let directory = self.directory.display();
        match printer.format() {
            Format::Json => printer.document(&json!({"ok": true, "directory": directory.to_string()}))?,
            Format::Human => printer.print_page(Page::new().text(directory).end())?,
        }
        Ok(Exit::Success)
    }
}
