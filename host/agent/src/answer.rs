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
use crate::injection::{
    CompletedCall, Injection, InjectionContext, InjectionStrategy, write_entity_tool_names, write_facade_tool_names,
};
use toolwit_core::{Arguments, NamedTool, Signal, ToolCall, ToolError, ToolName, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

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

/// A result that stands in the history, and what it brought.
pub(super) struct Followed {
    result: ToolResult,
    /// What the model reads.
    pub(super) content: String,
    /// The types of the objects that it handed over.
    pub(super) artifacts: Vec<String>,
    injected: Vec<Event>,
    cut: Option<Cut>,
    /// How long the whole text is, before it was cut.
    bytes: usize,
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

    /// Answers a call of a tool that is locked with what to do first. That is no failure, and nothing has run.
    pub(super) fn guide(&mut self, call: &ToolCall, name: ToolName, guidance: String) {
        self.conversation.history.answer(call, guidance.clone(), false);
        self.emit(&Event::CallGuided {
            id: call.id.clone(),
            name,
            content: guidance,
        });
    }

    /// Answers a call that was run: tells the model and the user, and lets the strategies look at the result.
    pub(super) fn answer(&mut self, prepared: Prepared, tool: NamedTool, finished: Finished) -> Consequence {
        let wall_ms = millis(finished.wall);
        let Answer { result, kind, failure } = answer_of(&tool, finished.outcome);
        let (name, id) = (tool.name.clone(), tool.definition.id.clone());
        let (call, is_error) = (prepared.call, result.is_error());
        let arguments = prepared.arguments.unwrap_or_default();
        self.tally.calls.push(CallRecord {
            id: call.id.clone(),
            name: name.clone(),
            tool: id.clone(),
            is_error,
            wall_ms,
        });
        let action = Action::new(name.clone(), id.clone(), wall_ms, is_error);
        self.conversation.process.note(action);
        let goes_on = self.conversation.late.note(&call, &arguments, &tool, &result);
        tracing::debug!(tool = %name, wall_ms, is_error, goes_on, "a tool is done");
        let followed = self.follow(&call, tool, arguments, result, String::new(), goes_on);
        self.emit(&Event::ToolFinished {
            id: call.id.clone(),
            name: name.clone(),
            tool: id,
            wall_ms,
            is_error,
            kind,
            content: followed.content.clone(),
            artifacts: followed.artifacts.clone(),
            goes_on,
        });
        let consequence = self.settle(call.id, &name, followed);
        Consequence { failure, ..consequence }
    }

    /// Puts a result into the history, after a heading, with the tools that it brings. A call that goes on does not count as
    /// done: its late result will.
    pub(super) fn follow(
        &mut self,
        call: &ToolCall,
        tool: NamedTool,
        arguments: Arguments,
        result: ToolResult,
        heading: String,
        goes_on: bool,
    ) -> Followed {
        let NamedTool { name, tool, .. } = tool;
        let is_nested = tool.is_agent() && self.conversation.drops_nested_artifacts;
        self.conversation
            .history
            .answer(call, result.content(), result.is_error());
        let mut completed = CompletedCall::new(call.id.clone(), name, arguments, tool, result);
        let injected = self.inject(&mut completed);
        if !goes_on {
            let turn = self.conversation.turns;
            self.conversation.toolbox.calls.push(completed.to_past_call(turn));
        }
        let result = completed.result;
        let described = self.conversation.toolbox.described(&injected).unwrap_or_default();
        let full = heading + &result.content() + &described;
        let cut = self.conversation.pages.cut(&full);
        let content = cut.as_ref().map_or(&full, |cut| &cut.content).clone();
        self.conversation.history.amend(&content);
        if !is_nested {
            self.tally.artifacts.extend(result.artifacts.iter().cloned());
        }
        Followed {
            artifacts: result.artifacts.iter().map(|artifact| artifact.kind.clone()).collect(),
            bytes: full.len(),
            content,
            result,
            injected,
            cut,
        }
    }

    /// Tells the user and the observers what followed from a result, after the event of the result itself.
    pub(super) fn settle(&mut self, call: String, name: &ToolName, followed: Followed) -> Consequence {
        let result = followed.result;
        self.tell_user(&result);
        self.emit_all(&followed.injected);
        if let Some(cut) = followed.cut {
            self.tell_cut(call, name, cut, followed.bytes);
        }
        Consequence {
            direct: result.is_final().then(|| result.content()),
            signal: result.signal,
            failure: None,
        }
    }

    fn tell_user(&self, result: &ToolResult) {
        let Some(text) = result.user_text() else {
            return;
        };
        let output = self.context.output();
        if catch_unwind(AssertUnwindSafe(|| output.communicate(text))).is_err() {
            tracing::warn!("the output to the user panicked; the message is lost");
        }
    }

    /// Applies what the strategies want after a call, and writes the names of the tools that came in into its result. Returns
    /// what there is to tell.
    fn inject(&mut self, call: &mut CompletedCall) -> Vec<Event> {
        let Some(injection) = self.evaluate(call) else {
            let trigger = call.name.clone();
            return vec![Event::StrategyFailed { trigger }];
        };
        let (discovered, listed) = (injection.discovered.clone(), injection.listed.clone());
        let toolbox = &mut self.conversation.toolbox;
        let events = toolbox.apply(injection, &call.name);
        write_entity_tool_names(&mut call.result, &discovered, toolbox.callable());
        write_facade_tool_names(&mut call.result, &listed, toolbox.callable());
        events
    }

    /// Tells that a result was cut, and brings the tool that reads on.
    fn tell_cut(&mut self, id: String, name: &ToolName, cut: Cut, bytes: usize) {
        self.emit(&Event::ResultCut {
            id,
            result: cut.result,
            bytes,
            shown_bytes: cut.shown_bytes,
        });
        let reader = self.conversation.reader_when_missing();
        let events = self.conversation.toolbox.apply(reader, name);
        self.emit_all(&events);
    }

    /// Asks the strategies. One that panics changes nothing.
    fn evaluate(&self, call: &CompletedCall) -> Option<Injection> {
        let conversation = &self.conversation;
        let context = InjectionContext::after(call, self.view());
        let evaluated = catch_unwind(AssertUnwindSafe(|| conversation.strategy.evaluate(&context)));
        if evaluated.is_err() {
            tracing::error!(tool = %call.name, "an injection strategy panicked; nothing changes");
        }
        evaluated.ok()
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
                let kind = result.is_error().then_some(ErrorKind::Tool);
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
