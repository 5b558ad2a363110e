//! A person at the terminal who approves calls.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use async_trait::async_trait;

use super::answer::{TypedAnswer, parse};
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
        let asked = tokio::task::spawn_blocking(move || {
            discard_typed();
            ask(&request, &mut io::stdin().lock(), &mut write_stderr)
        });
        asked.await.unwrap_or_else(|_| unanswered("the question failed"))
    }

    fn is_sequential(&self) -> bool {
        true
    }
}

/// Discards input that was typed before the question, because it cannot be an answer to it.
fn discard_typed() {
    #[cfg(unix)]
    // It fails if the input is not a terminal; then no person is asked.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Asks until there is an answer. The end of the input is not an approval.
fn ask(request: &ApprovalRequest, input: &mut dyn BufRead, print: &mut dyn FnMut(&Page)) -> ApprovalAnswer {
    print(&question(request));
    for _ in 0..LINES_MAX {
        prompt(PROMPT, print);
        let Some(line) = read_line(input) else { break };
        match parse(&line, request) {
            TypedAnswer::Answer(answer) => return answer,
            TypedAnswer::Help => print(&help()),
            TypedAnswer::Edit => {
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

pub(super) fn unanswered(reason: &str) -> ApprovalAnswer {
    let reason = reason.to_owned();
    Approval::Unanswered { reason }.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use toolwit::ToolDefinition;
    use toolwit::tool::{ApprovalScope, CallAccess, Effect, EffectClass, ToolId};

    fn request(arguments: Value) -> ApprovalRequest {
        let id = ToolId::from_text("files/demo:files/api#write");
        let definition = ToolDefinition::new(id, "write", "Writes.", json!({"type": "object"}));
        let mut access = CallAccess::default();
        access.effect = Effect::of_untrusted(EffectClass::Write, Some(EffectClass::Read));
        access.grant = vec!["files read-write /srv at /data".to_owned()];
        access.writing_rule = access.grant.first().cloned();
        let arguments = arguments.as_object().unwrap().clone();
        let mut request = ApprovalRequest::new("call-1", &definition, arguments, access);
        request.callers = vec![ToolId::native("clerk"), ToolId::from_text("shop#order")];
        request
    }

    /// Returns what is printed, and the answer to the typed text.
    fn asked(request: &ApprovalRequest, typed: &str) -> (String, ApprovalAnswer) {
        let mut printed = String::new();
        let answer = ask(request, &mut typed.as_bytes(), &mut |page: &Page| {
            printed.push_str(&page.to_string());
            // A person ends the line of a prompt.
            if !printed.ends_with('\n') {
                printed.push('\n');
            }
        });
        (anstream::adapter::strip_str(&printed).to_string(), answer)
    }

    #[test]
    fn question_shows_exactly_what_will_run() {
        let arguments = json!({"path": "/data/a", "text": "\u{1b}[2Jhidden\u{202e}\nrun it? yes", "n": 1});
        let (printed, answer) = asked(&request(arguments), "y\n");
        assert_eq!(answer, Approval::Approved.into());
        let lines: Vec<_> = printed.lines().map(str::trim).collect();
        for line in [
            "tool       files/demo:files/api#write",
            "effect     write (its author claims read, which is not proved)",
            "grant      files read-write /srv at /data",
            "called by  native#clerk → shop#order",
            r#""path": "/data/a","#,
            r#""text": "\u001b[2Jhidden\u202e\nrun it? yes","#,
        ] {
            assert!(lines.contains(&line), "{line}\n{printed}");
        }
        assert_eq!(printed.matches(PROMPT).count(), 1, "{printed}");
    }

    #[test]
    fn answers_are_explained_and_edits_are_read_again() {
        let (printed, answer) = asked(&request(json!({})), "?\ne\nnot json\nedit\n{\"path\": \"/data/b\"}\n");
        let arguments = json!({"path": "/data/b"}).as_object().unwrap().clone();
        assert_eq!(answer, Approval::Edited { arguments }.into());
        assert!(
            printed.contains("for 30 days") && printed.contains("error: expected"),
            "{printed}"
        );
    }

    #[test]
    fn each_answer_has_its_decision_and_scope() {
        let request = request(json!({"path": "/data/a"}));
        let answer = |typed: &str| asked(&request, typed).1;
        let reason = "the user refused it: too late".to_owned();
        assert_eq!(answer("n too late\n").approval, Approval::Denied { reason });
        assert_eq!(answer("R\n").scope, ApprovalScope::Run);
        assert_eq!(answer(" session \n").scope, ApprovalScope::Session);
        let lasting = answer("t\n");
        assert_eq!(lasting.scope, ApprovalScope::Tool);
        assert!(lasting.valid_for.is_some() && matches!(answer("a\n").scope, ApprovalScope::Arguments(_)));
    }

    #[test]
    fn silence_and_noise_are_no_approval() {
        for typed in ["", "maybe\n", "e\n", &"x\n".repeat(100)] {
            let (_, answer) = asked(&request(json!({})), typed);
            assert!(matches!(answer.approval, Approval::Unanswered { .. }), "{typed:?}");
        }
    }
}
