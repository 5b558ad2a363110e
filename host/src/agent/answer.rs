//! The answers to the calls of a response, and what follows from them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::event::Event;
use super::history::{interrupted, told};
use super::outcome::CallRecord;
use super::page::Cut;
use super::prepare::{Prepared, not_run, with_expectation};
use super::process::Action;
use super::slot::{Finished, Outcome};
use super::tool_loop::{ToolLoop, millis};
use crate::error::{Error, ErrorKind, Phase};
use crate::injection::{CompletedCall, Injection, InjectionContext, InjectionStrategy};
use crate::tool::{Arguments, NamedTool, Signal, ToolCall, ToolError, ToolResult};

/// What follows from a result for the run.
#[derive(Default)]
pub(super) struct Consequence {
    /// The result is the run's answer.
    pub(super) direct: Option<String>,
    /// The run stops, because the tool asks for it.
    pub(super) signal: Option<Signal>,
    /// The run stops, and its operator hears this.
    pub(super) failure: Option<Error>,
}

/// What the model was told of a result.
pub(super) struct Told {
    pub(super) content: String,
    pub(super) cut: Option<Cut>,
}

/// A result, and what went wrong.
struct Answer {
    result: ToolResult,
    kind: Option<ErrorKind>,
    failure: Option<Error>,
}

impl ToolLoop<'_> {
    /// Answers a call that is not run.
    pub(super) fn refuse(&mut self, call: &ToolCall, error: &Error) {
        let content = told(error);
        self.conversation.history.answer(call, content.clone(), true);
        self.emit(&Event::CallRefused {
            id: call.id.clone(),
            name: call.name.clone(),
            kind: error.kind,
            content,
        });
    }

    /// Answers a call that was run: tells the model and the user, and lets the strategies look at the result.
    pub(super) fn answer(&mut self, prepared: Prepared, tool: NamedTool, finished: Finished) -> Consequence {
        let wall_ms = millis(finished.wall);
        let Answer { result, kind, failure } = answer_of(&tool, finished.outcome);
        let call = prepared.call;
        let arguments = prepared.arguments.unwrap_or_default();
        let content = result.content();
        let told = self.tell(&call, &content, &result);
        let id = &tool.definition.id;
        self.tally.calls.push(CallRecord {
            id: call.id.clone(),
            name: tool.name.clone(),
            tool: id.clone(),
            is_error: result.is_error,
            wall_ms,
        });
        let action = Action::new(tool.name.clone(), id.clone(), wall_ms, result.is_error);
        self.conversation.process.note(action);
        self.emit(&Event::ToolFinished {
            id: call.id.clone(),
            name: tool.name.clone(),
            tool: id.clone(),
            wall_ms,
            is_error: result.is_error,
            kind,
            content: told.content,
        });
        tracing::debug!(tool = %tool.name, wall_ms, is_error = result.is_error, is_async = result.is_async, "a tool is done");
        self.conversation.late.note(&call, &arguments, &tool, &result);
        let consequence = self.follow(call.id, tool, arguments, result, told.cut, content);
        Consequence { failure, ..consequence }
    }

    /// Puts a result into the history, cut where it is too long.
    pub(super) fn tell(&mut self, call: &ToolCall, full: &str, result: &ToolResult) -> Told {
        let cut = self.conversation.pages.cut(full);
        let content = cut.as_ref().map_or(full, |cut| &cut.content).to_owned();
        self.conversation.history.answer(call, content.clone(), result.is_error);
        Told { content, cut }
    }

    /// Does what follows from a result that the model was told: the user hears of it, artifacts are kept, tools come and go.
    pub(super) fn follow(
        &mut self,
        call: String,
        tool: NamedTool,
        arguments: Arguments,
        result: ToolResult,
        cut: Option<Cut>,
        full: String,
    ) -> Consequence {
        self.tell_user(&result);
        let is_nested = tool.tool.is_agent() && self.conversation.drops_nested_artifacts;
        if !is_nested {
            self.tally.artifacts.extend(result.artifacts.iter().cloned());
        }
        let bytes = full.len();
        let consequence = Consequence {
            direct: (result.return_direct && !result.is_error).then_some(full),
            signal: result.signal.clone(),
            failure: None,
        };
        let completed = CompletedCall::new(call, tool.name, arguments, tool.tool, result);
        self.inject(&completed, cut, bytes);
        consequence
    }

    fn tell_user(&self, result: &ToolResult) {
        let Some(text) = result.for_user.as_deref().filter(|_| !result.silent) else {
            return;
        };
        let output = self.context.output();
        if catch_unwind(AssertUnwindSafe(|| output.communicate(text))).is_err() {
            tracing::warn!("the output to the user panicked; the message is lost");
        }
    }

    /// Applies what the strategies want after a call, and brings the tool that reads on when the result was cut.
    fn inject(&mut self, call: &CompletedCall, cut: Option<Cut>, bytes: usize) {
        let mut injection = self.evaluate(call);
        if let Some(cut) = cut {
            injection.merge(self.conversation.reader_when_missing());
            self.emit(&Event::ResultCut {
                id: call.id.clone(),
                result: cut.result,
                bytes,
                shown_bytes: cut.shown_bytes,
            });
        }
        let events = self.conversation.toolbox.apply(injection, &call.name);
        self.emit_all(&events);
    }

    /// Asks the strategies. One that panics changes nothing.
    fn evaluate(&self, call: &CompletedCall) -> Injection {
        let conversation = &self.conversation;
        let context = InjectionContext::new(
            conversation.history.messages(),
            conversation.toolbox.callable(),
            conversation.toolbox.entities(),
            call,
            self.tally.iterations,
        );
        let evaluated = catch_unwind(AssertUnwindSafe(|| conversation.strategy.evaluate(&context)));
        evaluated.unwrap_or_else(|_| {
            tracing::error!(tool = %call.name, "an injection strategy panicked; nothing changes");
            self.emit(&Event::StrategyFailed {
                trigger: call.name.clone(),
            });
            Injection::none()
        })
    }
}

/// Turns what came of a call into what the model reads, and logs what went wrong.
fn answer_of(tool: &NamedTool, outcome: Outcome) -> Answer {
    let name = &tool.name;
    let error = match outcome {
        Outcome::Answered(answered) => match *answered {
            Ok(result) => {
                if let Some(source) = &result.source {
                    tracing::warn!(tool = %name, error = %source, "the tool failed");
                }
                let kind = result.is_error.then_some(ErrorKind::Tool);
                return Answer {
                    result,
                    kind,
                    failure: None,
                };
            }
            Err(ToolError::Operator(error)) => {
                tracing::error!(tool = %name, error = %error, "the tool failed; the run stops");
                let told = not_run(error.kind, "the tool's operator must look into it first");
                return Answer {
                    failure: Some(error.with_tool(name.as_str())),
                    ..refusal(&told)
                };
            }
            Err(error) => Error::from(with_expectation(error, &tool.definition, name)),
        },
        Outcome::Panicked => {
            tracing::error!(tool = %name, "the tool panicked");
            let message = "the tool broke inside the host; the call may have taken effect";
            Error::new(ErrorKind::Internal, Phase::Execute, message).with_tool(name.as_str())
        }
        Outcome::Abandoned => interrupted().with_tool(name.as_str()),
    };
    tracing::debug!(tool = %name, %error, "the call failed");
    refusal(&error)
}

fn refusal(error: &Error) -> Answer {
    Answer {
        result: ToolResult::error(told(error)),
        kind: Some(error.kind),
        failure: None,
    }
}
