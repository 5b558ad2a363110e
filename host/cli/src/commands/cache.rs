//! `toolwit cache`: the cache of compiled code.

use clap::Subcommand;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{Page, counted, size};
use crate::output::printer::{Format, Printer};
use toolwit::limits::ByteCount;
use toolwit::sandbox::{CodeCacheChange, CodeCacheLocation, CodeCacheReport};

const EXAMPLES: &str = "\
Examples:
  toolwit cache
  toolwit cache cap 500MiB
  toolwit cache clean";

/// Show, limit or empty the code cache
///
/// A component is compiled before its first call. The compiled code is cached by the digest of the component for later
/// processes. A component whose code was removed is compiled again before its next call.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cache {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the size of the cache (default)
    Show,
    /// Remove all entries, or the least recently used until the cache is small enough
    Clean {
        /// Size to keep, such as 100MiB
        #[arg(long, value_name = "SIZE")]
        keep: Option<ByteCount>,
    },
    /// Set the maximum size of the cache
    Cap {
        /// Maximum size, such as 2GiB
        size: ByteCount,
    },
}

impl Cache {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let change = match self.action {
            None | Some(Action::Show) => None,
            Some(Action::Clean { keep }) => Some(CodeCacheChange::ShrinkTo(keep.map_or(0, |ByteCount(bytes)| bytes))),
            Some(Action::Cap { size: ByteCount(bytes) }) => Some(CodeCacheChange::SetMaximum(bytes)),
        };
        let report = CodeCacheLocation::User.manage(change).await?;
        print(printer, &report)?;
        Ok(Exit::Success)
    }
}

fn print(printer: Printer, report: &CodeCacheReport) -> Result<(), Failure> {
    let (usage, directory) = (&report.usage, report.directory.display());
    if printer.format() == Format::Json {
        let removed = report.removed.as_ref();
        let removed = removed.map(|removed| json!({"entries": removed.entries, "bytes": removed.bytes}));
        return printer.document(&json!({
            "directory": directory.to_string(),
            "entries": usage.entries,
            "bytes": usage.bytes,
            "bytes_max": usage.bytes_max,
            "dropped": removed,
        }));
    }
    if let Some(removed) = &report.removed {
        let mut page = Page::new();
        let (components, bytes) = (counted(removed.entries, "component"), size(removed.bytes));
        page.text(format_args!("removed {components}, {bytes}")).end();
        printer.message(&page);
    }
    let mut page = Page::new();
    let (components, bytes, bytes_max) = (
        counted(usage.entries, "component"),
        size(usage.bytes),
        size(usage.bytes_max),
    );
    page.text(format_args!("{components}, {bytes} of {bytes_max}, in {directory}"))
        .end();
    printer.print_page(&page)
}
