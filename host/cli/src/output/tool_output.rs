//! Output of tools to the user during a call, on standard error.

use crate::output::conversation;
use crate::output::page::Page;
use crate::output::printer::Printer;
use toolwit::tool::{Origin, OutputSink};

/// Prints the messages of tools, and with `-v` also their progress.
pub(crate) struct ToolOutput(pub(crate) Printer);

impl OutputSink for ToolOutput {
    fn progress(&self, text: &str) {
        let mut page = Page::new();
        conversation::write_progress(&mut page, text);
        self.0.detail(&page);
    }

    fn communicate(&self, text: &str) {
        let mut page = Page::new();
        conversation::write_message(&mut page, text);
        self.0.message(&page);
    }

    fn shows_chunks(&self, _origin: &Origin) -> bool {
        false
    }
}
