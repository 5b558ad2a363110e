//! `toolwit pack`: embeds manifest and docs in a component.

use std::path::PathBuf;

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, size};
use crate::output::printer::{Format, Printer};
use toolwit::packing::Packing;

const EXAMPLES: &str = "\
Examples:
  toolwit pack weather.wasm                                embed weather.toml and weather.wit in place
  toolwit pack weather.wasm --manifest m.toml --out dist/weather.wasm";

/// Embed manifest and docs in a component, to ship a package as one file
///
/// Embeds the .toml and the .wit file next to the component, if they exist, and checks them against the component.
/// Writes version and description of the manifest to the standard custom sections too, for other programs. Nothing else
/// in the file changes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pack {
    /// Component file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Path to the manifest [default: FILE with the extension .toml, if it exists]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Path to the WIT directory or file [default: FILE with the extension .wit, if it exists]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// Path to the output file [default: FILE]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Pack {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let mut packing = Packing::new(self.file);
        if let Some(manifest) = self.manifest {
            packing = packing.manifest(manifest);
        }
        if let Some(wit) = self.wit {
            packing = packing.wit(wit);
        }
        if let Some(out) = self.out {
            packing = packing.out(out);
        }
        let package = packing.run().await?;
        let component = package.component.display();
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": true,
                "component": component.to_string(),
                "size_bytes": package.size_bytes,
            }))?,
            Format::Human => {
                let mut page = Page::new();
                page.styled(FAINT, format_args!("packed: {}", size(package.size_bytes)))
                    .end();
                printer.message(&page);
                printer.print_page(Page::new().text(component).end())?;
                if package.has_changed {
                    printer.hint("the digest has changed: grants for the previous version no longer apply");
                }
            }
        }
        Ok(Exit::Success)
    }
}
