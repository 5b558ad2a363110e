//! `toolwit cache`: the cache of compiled code.

use std::path::Path;

use clap::Subcommand;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::code_cache::{directory, open, unusable};
use crate::output::page::{Page, counted, size};
use crate::output::printer::{Format, Printer};
use toolwit::limits::ByteCount;
use toolwit::sandbox::CodeCacheUsage;
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit cache
  toolwit cache cap 500MiB
  toolwit cache clean";

/// Show, limit or empty the code cache
///
/// A component is compiled when it is first called. The compiled code is cached by the digest of the component for later
/// processes. After removal, the component is compiled again.
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
        let work = move || {
            let directory = directory()?;
            let cache = open(&directory)?;
            let failed = |error: std::io::Error| unusable(&directory, &error);
            let dropped = match self.action {
                None | Some(Action::Show) => None,
                Some(Action::Clean { keep }) => {
                    let keep = keep.map_or(0, |ByteCount(bytes)| bytes);
                    Some(cache.shrink_to(keep).map_err(failed)?)
                }
                Some(Action::Cap { size: ByteCount(bytes) }) => Some(cache.set_bytes_max(bytes).map_err(failed)?),
            };
            Ok((cache.usage().map_err(failed)?, dropped, directory))
        };
        let (usage, dropped, directory) = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
            let message = "reading the cache failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
        })?;
        print(printer, &usage, dropped.as_ref(), &directory)?;
        Ok(Exit::Success)
    }
}

fn print(
    printer: Printer,
    usage: &CodeCacheUsage,
    dropped: Option<&CodeCacheUsage>,
    directory: &Path,
) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        let dropped = dropped.map(|dropped| json!({"entries": dropped.entries, "bytes": dropped.bytes}));
        return printer.document(&json!({
            "directory": directory.display().to_string(),
            "entries": usage.entries,
            "bytes": usage.bytes,
            "bytes_max": usage.bytes_max,
            "dropped": dropped,
        }));
    }
    if let Some(dropped) = dropped {
        let mut page = Page::new();
        page.text(format_args!(
            "removed {}, {}",
            counted(dropped.entries, "component"),
            size(dropped.bytes)
        ))
        .end();
        printer.message(&page);
    }
    let mut page = Page::new();
    page.text(format_args!(
        "{}, {} of {}, in {}",
        counted(usage.entries, "component"),
        size(usage.bytes),
        size(usage.bytes_max),
        directory.display()
    ))
    .end();
    printer.data(&page)
}
