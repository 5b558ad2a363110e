//! `toolwit lint`: checks the docs and the WIT of a component.

use std::path::PathBuf;

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, GOOD, Page, WARN};
use crate::output::printer::{Format, Printer};
use toolwit::registry::lint_package;

const EXAMPLES: &str = "\
Examples:
  toolwit lint target/plugins/greet.wasm
  toolwit lint $(toolwit build greet)";

/// Check the docs and the WIT of a component
///
/// Reports a WIT file that does not belong to the component, functions and resources without doc comments, unclear
/// parameters, duplicate names, unused interfaces, and functions whose effect is lost when their call ends. Exits with 1 if it finds something. Nothing is compiled and no
/// guest code runs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lint {
    /// Component file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Lint {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let findings = lint_package(&self.file).await?;
        match printer.format() {
            Format::Json => printer.document(&json!({"ok": findings.is_empty(), "findings": findings}))?,
            Format::Human => {
                let mut page = Page::new();
                for finding in &findings {
                    page.styled(WARN, "warning:").text(" ").text(&finding.subject);
                    page.text(": ").text(&finding.message).end();
                    page.spaces(2)
                        .styled(FAINT, format_args!("hint: {}", finding.suggestion))
                        .end();
                }
                if findings.is_empty() {
                    page.styled(GOOD, "ok").text("  no findings").end();
                }
                printer.print_page(&page)?;
            }
        }
        Ok(if findings.is_empty() {
            Exit::Success
        } else {
            Exit::Failed
        })
    }
}
