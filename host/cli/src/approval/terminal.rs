//! A person at the terminal who approves calls.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use async_trait::async_trait;

use super::answer::{Typed, parse};
use super::question::{EDIT_PROMPT, PROMPT, help, question};
use crate::output::page::{BAD, Page};
use crate::output::printer::write_stderr;
use toolwit::ToolContext;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver};

/// Maximum length of a typed line, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of lines that are read for one question.
const LINES_MAX: usize = 20;

/// A display that must not draw while a person types.
pub(crate) trait Screen: Send + Sync {
    /// Pauses or continues the display.
    fn set_paused(&self, is_paused: bool);
}

/// Asks a person at the terminal.
pub(crate) struct TerminalApprover {
    screen: Arc<dyn Screen>,
}

impl TerminalApprover {
    pub(crate) fn new(screen: Arc<dyn Screen>) -> Self {
        Self { screen }
    }
}

/// Continues the display when the question ends, also if the call is cancelled.
struct Paused(Arc<dyn Screen>);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.set_paused(false);
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        self.screen.set_paused(true);
        let _paused = Paused(self.screen.clone());
        let asked = tokio::task::spawn_blocking(move || ask(&request, &mut io::stdin().lock(), &mut write_stderr));
        asked.await.unwrap_or_else(|_| unanswered("the question failed"))
    }

    fn is_sequential(&self) -> bool {
        true
    }
}

/// Asks until there is an answer. The end of the input is no approval.
fn ask(request: &ApprovalRequest, input: &mut dyn BufRead, print: &mut dyn FnMut(&Page)) -> ApprovalAnswer {
    print(&question(request));
    for _ in 0..LINES_MAX {
        prompt(PROMPT, print);
        let Some(line) = read_line(input) else { break };
        match parse(&line, request) {
            Typed::Answer(answer) => return answer,
            Typed::Help => print(&help()),
            Typed::Edit => {
                prompt(EDIT_PROMPT, print);
                let Some(line) = read_line(input) else { break };
                match serde_json::from_str(&line) {
                    Ok(arguments) => return Approval::Edited { arguments }.into(),
                    Err(error) => {
                        let mut page = Page::new();
                        page.styled(BAD, "error:").text(format_args!(" {error}")).end();
                        print(&page);
                    }
                }
            }
        }
    }
    unanswered("it needs an approval, and the terminal gave none")
}

fn prompt(text: &str, print: &mut dyn FnMut(&Page)) {
    let mut page = Page::new();
    page.text(text);
    print(&page);
}

/// Reads a line; `None` at the end of the input and for a line that is too long or not text.
fn read_line(input: &mut dyn BufRead) -> Option<String> {
    let mut line = String::new();
    let read = input.take(LINE_BYTES_MAX).read_line(&mut line).ok()?;
    (read > 0 && (read as u64) < LINE_BYTES_MAX).then_some(line)
}

fn unanswered(reason: &str) -> ApprovalAnswer {
    let reason = reason.to_owned();
    Approval::Unanswered { reason }.into()
}
