//! What tools say to the user while they run, on standard error.

use super::page::Page;
use super::printer::Printer;
use super::story;
use toolwit::tool::OutputSink;

/// Prints what stays, and what passes where details are wanted.
pub(super) struct Heard(pub(super) Printer);

impl OutputSink for Heard {
    fn progress(&self, text: &str) {
        self.0.detail(Page::new().text(text).end());
    }

    fn communicate(&self, text: &str) {
        let mut page = Page::new();
        story::message(&mut page, text);
        self.0.say(&page);
    }
}
