//! What tools say to the user while they run, on standard error.

use crate::output::conversation;
use crate::output::page::Page;
use crate::output::printer::Printer;
use toolwit::tool::OutputSink;

/// Prints what stays, and what passes where details are wanted.
pub(crate) struct ToolOutput(pub(crate) Printer);

impl OutputSink for ToolOutput {
    fn progress(&self, text: &str) {
        self.0.detail(Page::new().text(text).end());
    }

    fn communicate(&self, text: &str) {
        let mut page = Page::new();
        conversation::message(&mut page, text);
        self.0.message(&page);
    }
}
