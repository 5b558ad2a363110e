//! The display of a run: events, streamed text and a spinner.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use super::held_output::HeldOutput;
use crate::approval::Screen;
use crate::output::answer_stream::{AnswerStream, TextKind};
use crate::output::conversation;
use crate::output::page::{FAINT, Page};
use crate::output::printer::Printer;
use crate::output::progress::Spinner;
use crate::output::stream_preview::StreamPreview;
use toolwit::agent::{Event, RecordedApprovalDecision};
use toolwit::tool::{ApprovalBasis, ApprovalDecision, Origin, OutputSink};

/// The hint for a call about which no person could be asked.
const UNANSWERED_HINT: &str = "run it at a terminal, let it wait for `toolwit approve` with `--session NAME --ask-later=10m`, allow the \
                               tool with an `[[approval.rule]]` in the policy file, or allow all calls with `--approve never`";

/// Prints events while the model runs, and shows a spinner between them.
pub(crate) struct RunProgress {
    printer: Printer,
    model: String,
    spinner: Spinner,
    /// The prints of other calls while a question is open.
    held_output: HeldOutput,
    /// The last words of the current response.
    preview: Mutex<StreamPreview>,
    /// Prints the text of the model as it arrives. `None` if only a preview is shown.
    stream: Option<Mutex<AnswerStream>>,
}

impl OutputSink for RunProgress {
    fn progress(&self, text: &str) {
        self.spinner.set_text(text);
    }

    fn communicate(&self, text: &str) {
        self.close_stream();
        let mut page = Page::new();
        conversation::write_message(&mut page, text);
        self.print_after_question(move |printer| printer.message(&page));
    }

    fn model_text(&self, text: &str, origin: &Origin) {
        if !self.print_piece(TextKind::Answer, text, origin) {
            self.show_preview(&self.model, text);
        }
    }

    /// Only a stream prints the text for good. A preview is replaced.
    fn shows_chunks(&self, origin: &Origin) -> bool {
        self.stream.is_some() && origin.parent_call.is_none()
    }

    fn reasoning(&self, text: &str, origin: &Origin) {
        if !self.print_piece(TextKind::Reasoning, text, origin) {
            self.show_preview("thinking", text);
        }
    }

    fn call_announced(&self, name: &str, _: &Origin) {
        self.close_stream();
        self.spinner
            .set_text(&format!("{} prepares a call of {name}", self.model));
    }
}

impl Screen for RunProgress {
    fn set_paused(&self, is_paused: bool) {
        if is_paused {
            self.held_output.start_holding();
        } else {
            let prints = self.held_output.release();
            prints.into_iter().for_each(|print| self.spinner.suspend(print));
        }
        self.spinner.set_paused(is_paused);
    }
}

impl RunProgress {
    /// Creates the display of one run, whose answer is printed at the end.
    pub(crate) fn new(printer: Printer, model: &str) -> Self {
        Self {
            printer,
            model: model.to_owned(),
            spinner: Spinner::new(printer, "starting"),
            held_output: HeldOutput::default(),
            preview: Mutex::default(),
            stream: None,
        }
    }

    /// Creates the display of a chat, which prints the text of the model as it arrives.
    pub(crate) fn streaming(printer: Printer, model: &str) -> Self {
        let mut progress = Self::new(printer, model);
        progress.stream = Some(Mutex::new(AnswerStream::new(printer)));
        progress
    }

    /// Ends the display of a turn: the streamed line and the spinner.
    pub(crate) fn end_turn(&self) {
        self.close_stream();
        self.spinner.stop();
    }

    /// Prints a part of the streamed text. Returns `false` if there is no stream, or if the text is that of a nested
    /// agent.
    fn print_piece(&self, kind: TextKind, piece: &str, origin: &Origin) -> bool {
        match &self.stream {
            Some(stream) if origin.parent_call.is_none() => {
                // The spinner would be drawn over the text.
                self.spinner.stop();
                stream.lock().unwrap_or_else(PoisonError::into_inner).print(kind, piece);
                true
            }
            _ => false,
        }
    }

    fn close_stream(&self) {
        if let Some(stream) = &self.stream {
            stream.lock().unwrap_or_else(PoisonError::into_inner).close();
        }
    }

    /// Shows the last words of a streamed text. The complete answer is printed when the run ends.
    fn show_preview(&self, label: &str, piece: &str) {
        if self.spinner.is_visible() {
            let mut preview = self.preview.lock().unwrap_or_else(PoisonError::into_inner);
            self.spinner.set_text(&format!("{label}: {}", preview.push(piece)));
        }
    }

    /// Prints now or, if a question is open, after its answer.
    fn print_after_question(&self, print: impl FnOnce(Printer) + Send + 'static) {
        let printer = self.printer;
        if let Some(print) = self.held_output.hold_or_return(move || print(printer)) {
            self.spinner.suspend(print);
        }
    }

    /// Prints an event.
    pub(crate) fn print(&self, event: &Event) {
        self.close_stream();
        self.update_display(event);
        let mut page = Page::new();
        match event {
            // The text has been printed as it arrived.
            Event::ModelAnswered { tool_calls, .. } if self.stream.is_some() => {
                conversation::write_calls(&mut page, tool_calls);
            }
            _ => conversation::write_event(&mut page, event),
        }
        self.print_after_question(move |printer| printer.message(&page));
    }

    /// Prints a question that another process can answer.
    pub(crate) fn announce(&self, question: &Page, hint: impl Display) {
        self.close_stream();
        self.spinner.suspend(|| {
            self.printer.message(question);
            self.printer.hint(hint);
        });
    }

    /// Prints a decision if the question was not answered, or if a stored answer decided.
    fn print_decision(&self, decision: &RecordedApprovalDecision) {
        let reason = decision.reason.as_deref();
        match (decision.decision, decision.basis) {
            (ApprovalDecision::Unanswered, _) => {
                let reason = reason.unwrap_or("it needs an approval");
                let warning = format!("`{}` did not run: {reason}", decision.tool);
                self.print_after_question(move |printer| {
                    printer.warn(warning);
                    printer.hint(UNANSWERED_HINT);
                });
            }
            (ApprovalDecision::Cancelled, _) => {}
            (_, ApprovalBasis::Stored) => {
                let mut page = Page::new();
                conversation::write_stored_decision(&mut page, reason);
                self.print_after_question(move |printer| printer.message(&page));
            }
            _ => {}
        }
    }

    /// Updates the spinner, and prints warnings and the details for verbose output.
    fn update_display(&self, event: &Event) {
        match event {
            Event::IterationStarted { .. } => {
                self.preview.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.spinner.restart(&format!("waiting for {}", self.model));
            }
            Event::ToolStarted { name, .. } => self.spinner.restart(&format!("calling {name}")),
            Event::NestedCallStarted(call) => self.spinner.set_text(&format!("calling {}", call.tool)),
            Event::NestedCallFinished(_) => {
                let mut page = Page::new();
                conversation::write_nested_call(&mut page, event);
                self.print_after_question(move |printer| printer.detail(&page));
            }
            Event::ApprovalDecided(decision) => self.print_decision(decision),
            Event::AccessDenied { denied, .. } => {
                let denied = denied.clone();
                self.print_after_question(move |printer| printer.print_denied_accesses(&denied));
            }
            Event::Finished {
                iterations,
                tool_calls,
                usage,
                wall_ms,
                ..
            } => {
                let mut page = Page::new();
                let tokens = usage.tokens.input_tokens + usage.tokens.output_tokens;
                let cached = match usage.tokens.cached_tokens {
                    0 => String::new(),
                    cached => format!(" ({cached} from the provider's cache)"),
                };
                let injected = match usage.injected_tokens {
                    0 => String::new(),
                    injected => format!(", {injected} tokens of injected tools"),
                };
                let summary = format!(
                    "{iterations} inferences, {tool_calls} tool calls, {tokens} tokens{cached}{injected}, {wall_ms} ms"
                );
                page.styled(FAINT, summary).end();
                self.print_after_question(move |printer| printer.detail(&page));
            }
            _ => {}
        }
    }
}
