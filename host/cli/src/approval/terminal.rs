//! An approver that asks the person at the terminal.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, MutexGuard};

use super::answer::{TypedAnswer, parse_answer};
use super::question::{EDIT_PROMPT, PROMPT, help, question};
use super::typed_input::{TypedInput, TypedLines, discard_typed};
use crate::output::page::{BAD, Page};
use crate::output::printer::write_stderr;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver};
use toolwit::{Arguments, ToolContext};

/// Maximum number of times that the prompt of one question is shown.
const ATTEMPTS_MAX: usize = 20;

/// A display, such as a spinner, that must not draw while a person types.
pub(crate) trait Screen: Send + Sync {
    /// Pauses the display, or continues it.
    fn set_paused(&self, is_paused: bool);
}

/// A display that draws nothing.
pub(crate) struct NoScreen;

impl Screen for NoScreen {
    fn set_paused(&self, _is_paused: bool) {}
}

/// An approver that asks a person at the terminal.
pub(crate) struct TerminalApprover {
    screen: Arc<dyn Screen>,
}

impl TerminalApprover {
    pub(crate) fn new(screen: Arc<dyn Screen>) -> Self {
        Self { screen }
    }
}

/// A question that a person is reading or answering. The display is paused until this value is dropped.
pub(super) struct OpenQuestion {
    screen: Arc<dyn Screen>,
    is_answered: bool,
    /// The turn of this question, because only one question can be open at the terminal.
    _turn: MutexGuard<'static, ()>,
}

impl OpenQuestion {
    /// Waits until no other question is open, and pauses the display.
    pub(super) async fn open(screen: &Arc<dyn Screen>) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        screen.set_paused(true);
        Self {
            screen: screen.clone(),
            is_answered: false,
            _turn: turn,
        }
    }

    /// Closes the question, which was answered.
    pub(super) fn close(mut self) {
        self.is_answered = true;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if !self.is_answered {
            // Another process has answered, or the call was cancelled. The text typed so far must not answer the next
            // question.
            discard_typed();
            write_stderr(Page::new().end());
        }
        self.screen.set_paused(false);
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        let open_question = OpenQuestion::open(&self.screen).await;
        let answer = ask_person(question(&request), request.arguments).await;
        open_question.close();
        answer
    }

    fn is_sequential(&self) -> bool {
        true
    }
}

/// Asks a person about a call. Dropping the future ends the question.
pub(crate) async fn ask_person(question: Page, arguments: Arguments) -> ApprovalAnswer {
    discard_typed();
    ask_repeatedly(&question, &arguments, &mut TypedInput, &mut write_stderr).await
}

/// Asks until there is an answer, at most [`ATTEMPTS_MAX`] times. Without an answer, for example at the end of the
/// input, the call is not approved.
async fn ask_repeatedly(
    question: &Page,
    arguments: &Arguments,
    typed_lines: &mut dyn TypedLines,
    print: &mut (dyn FnMut(&Page) + Send),
) -> ApprovalAnswer {
    print(question);
    for _ in 0..ATTEMPTS_MAX {
        print_prompt(PROMPT, print);
        let Some(line) = typed_lines.next().await else { break };
        match parse_answer(&line, arguments) {
            TypedAnswer::Answer(answer) => return answer,
            TypedAnswer::Help => print(&help()),
            TypedAnswer::Edit => {
                print_prompt(EDIT_PROMPT, print);
                let Some(line) = typed_lines.next().await else { break };
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
    unanswered("it needs an approval, and no answer was typed at the terminal")
}

pub(super) fn print_prompt(text: &str, print: &mut (dyn FnMut(&Page) + Send)) {
    let mut page = Page::new();
    page.text(text);
    print(&page);
}

/// Returns the [`ApprovalAnswer`] of a question that got no answer. The model reads the reason.
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

    /// Asks about a call, with the typed text as input. Returns the printed text and the answer.
    fn ask_with_input(request: &ApprovalRequest, typed: &str) -> (String, ApprovalAnswer) {
        let mut printed = String::new();
        let mut print = |page: &Page| {
            printed.push_str(&page.to_string());
            // A prompt does not end its line: the person does, with Enter.
            if !printed.ends_with('\n') {
                printed.push('\n');
            }
        };
        let question = question(request);
        let mut typed_lines = typed.lines();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(ask_repeatedly(
            &question,
            &request.arguments,
            &mut typed_lines,
            &mut print,
        ));
        (anstream::adapter::strip_str(&printed).to_string(), answer)
    }

    #[test]
    fn question_shows_the_exact_call_with_escaped_control_characters() {
        let arguments = json!({"path": "/data/a", "text": "\u{1b}[2Jhidden\u{202e}\nrun it? yes", "n": 1});
        let (printed, answer) = ask_with_input(&request(arguments), "y\n");
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
    fn question_shows_how_many_further_calls_wait() {
        let mut request = request(json!({}));
        for (waiting, line) in [(1, "then       1 more call waits"), (3, "then       3 more calls wait")] {
            request.waiting = waiting;
            let (printed, _) = ask_with_input(&request, "y\n");
            assert!(printed.contains(line), "{printed}");
        }
        request.waiting = 0;
        assert!(!ask_with_input(&request, "y\n").0.contains("more call"));
    }

    #[test]
    fn help_and_an_invalid_edit_are_followed_by_another_prompt() {
        let (printed, answer) = ask_with_input(&request(json!({})), "?\ne\nnot json\nedit\n{\"path\": \"/data/b\"}\n");
        let arguments = json!({"path": "/data/b"}).as_object().unwrap().clone();
        assert_eq!(answer, Approval::Edited { arguments }.into());
        assert!(
            printed.contains("for 30 days") && printed.contains("error: expected"),
            "{printed}"
        );
    }

    #[test]
    fn each_typed_answer_has_its_decision_and_scope() {
        let request = request(json!({"path": "/data/a"}));
        let answer = |typed: &str| ask_with_input(&request, typed).1;
        let reason = "the user refused it: too late".to_owned();
        assert_eq!(answer("n too late\n").approval, Approval::Denied { reason });
        assert_eq!(answer("R\n").scope, ApprovalScope::Run);
        assert_eq!(answer(" session \n").scope, ApprovalScope::Session);
        let lasting = answer("t\n");
        assert_eq!(lasting.scope, ApprovalScope::Tool);
        assert!(lasting.valid_for.is_some() && matches!(answer("a\n").scope, ApprovalScope::ExactArguments(_)));
    }

    #[test]
    fn empty_or_invalid_input_does_not_approve() {
        for typed in ["", "maybe\n", "e\n", &"x\n".repeat(100)] {
            let (_, answer) = ask_with_input(&request(json!({})), typed);
            assert!(matches!(answer.approval, Approval::Unanswered { .. }), "{typed:?}");
        }
    }
}
