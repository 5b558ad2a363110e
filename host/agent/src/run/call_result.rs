//! Recording of call results: appends them to the history, evaluates the strategies, sends output to the user and emits
//! events.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::call_queue::{CallOutcome, FinishedCall};
use super::ending::EndRequests;
use super::pictures::result_pictures;
use super::prepared_call::PreparedCall;
use super::refusal::{hidden_operator_error, panicked_call, with_expected_parameters};
use super::run_state::RunState;
use crate::event::Event;
use crate::injection::{
    CompletedCall, Injection, InjectionContext, InjectionStrategy, write_entity_tool_names, write_facade_tool_names,
};
use crate::millis::millis;
use crate::outcome::CallRecord;
use crate::process::ProcessAction;
use crate::state::{TruncatedResult, cancelled_call, error_text};
use toolwit_core::{Arguments, NamedTool, ToolCall, ToolError, ToolName, ToolProvider, ToolResult};
use toolwit_core::{Error, ErrorKind, decode_encoded_values};

/// Answers a call with an error, because the call does not run.
pub(super) fn record_refusal(run: &mut RunState<'_>, call: &ToolCall, error: &Error) {
    let content = error_text(error);
    run.conversation.history.answer(call, content.clone(), true);
    run.emit(&Event::CallRefused {
        id: call.id.clone(),
        name: call.name.clone(),
        kind: error.kind,
        content,
    });
}

/// Answers a call of a locked tool with guidance on how to unlock it. The answer is not an error, and the tool does not
/// run.
pub(super) fn record_guidance(run: &mut RunState<'_>, call: &ToolCall, name: ToolName, guidance: String) {
    run.conversation.history.answer(call, guidance.clone(), false);
    run.emit(&Event::CallGuided {
        id: call.id.clone(),
        name,
        content: guidance,
    });
}

/// Answers a call that ended, and adds its request to end the run, if any, to `end_requests`. Returns the result, which
/// lists the names of the tools that it injected, and the kind of the error if the call could not run to its end.
pub(super) fn record_call(
    run: &mut RunState<'_>,
    call: PreparedCall,
    tool: NamedTool,
    finished: FinishedCall,
    end_requests: &mut EndRequests,
) -> (ToolResult, Option<ErrorKind>) {
    let wall_ms = millis(finished.wall);
    let ToolAnswer { result, kind } = convert_outcome(&tool, finished.outcome, end_requests);
    let (name, id, is_error) = (tool.name.clone(), tool.definition.id.clone(), result.is_error());
    let edited_arguments = finished.edited_arguments;
    let heading = edited_arguments.as_ref().map(edit_heading).unwrap_or_default();
    let arguments = edited_arguments.unwrap_or_else(|| {
        let arguments = call.arguments.unwrap_or_default();
        decode_encoded_values(&tool.definition.input_schema, arguments)
    });
    let call = call.history_call;
    run.tally.calls.push(CallRecord {
        id: call.id.clone(),
        name: name.clone(),
        tool: id.clone(),
        is_error,
        wall_ms,
    });
    let action = ProcessAction::new(name.clone(), id.clone(), wall_ms, is_error);
    run.conversation.process.record_action(action);
    let caller = run.conversation.caller.clone();
    let late_results = &mut run.conversation.late_results;
    let is_background = late_results.track((&call, &arguments, &tool), caller, &result);
    tracing::debug!(tool = %name, wall_ms, is_error, is_background, "a tool call ended");
    let event_id = call.id.clone();
    let unrecorded = UnrecordedResult {
        call,
        tool,
        arguments,
        result,
        heading,
        is_complete: !is_background,
    };
    let result = unrecorded.record(run, |content, artifacts| Event::ToolFinished {
        id: event_id,
        name,
        tool: id,
        wall_ms,
        is_error,
        kind,
        content,
        artifacts,
        is_background,
    });
    end_requests.add_result(&result);
    (result, kind)
}

/// Takes the tools out of a result that reveals them, because they were made for another caller than the current one. The
/// result says so.
pub(super) fn withhold_revealed_tools(result: &mut ToolResult, name: &ToolName) {
    if result.revealed_tools.take().is_some() {
        let note = format!("\n[its tools are not available: they were made for another caller; call `{name}` again]");
        result.for_llm.push_str(&note);
    }
}

/// Returns the heading that informs the model that a person changed the arguments of the call.
fn edit_heading(arguments: &Arguments) -> String {
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    format!("[the user changed the arguments of this call to {arguments}]\n")
}

/// The result of a call that is not in the history yet.
pub(super) struct UnrecordedResult {
    pub(super) call: ToolCall,
    pub(super) tool: NamedTool,
    pub(super) arguments: Arguments,
    pub(super) result: ToolResult,
    /// A line before the result, for the model; may be empty.
    pub(super) heading: String,
    /// Whether the call is complete. A background call is complete only with its late result.
    pub(super) is_complete: bool,
}

impl UnrecordedResult {
    /// Appends the result to the history and applies its injection. Then emits the event that `new_event` creates from
    /// the text for the model and the types of the artifacts.
    pub(super) fn record(
        self,
        run: &mut RunState<'_>,
        new_event: impl FnOnce(String, Vec<String>) -> Event,
    ) -> ToolResult {
        let NamedTool { name, tool, .. } = self.tool;
        let omits_artifacts = tool.is_agent() && run.conversation.drops_nested_artifacts;
        // The strategies read the answer in the history. Afterwards, a text that also describes the injected tools replaces
        // the answer.
        let history = &mut run.conversation.history;
        history.answer(&self.call, self.result.content(), self.result.is_error());
        let mut completed = CompletedCall::new(self.call.id, name, self.arguments, tool, self.result);
        let changes = inject(run, &mut completed);
        let conversation = &mut *run.conversation;
        if self.is_complete {
            conversation
                .toolbox
                .record_call(completed.to_past_call(conversation.turns));
        }
        let CompletedCall { id, name, result, .. } = completed;
        let descriptions = conversation.toolbox.descriptions(&changes).unwrap_or_default();
        let (pictures, notes) = result_pictures(&result.artifacts);
        let full_text = self.heading + &result.content() + &notes + &descriptions;
        let truncated = conversation.long_results.truncate(&full_text);
        let (content, full_text) = match &truncated {
            Some(truncated) => (truncated.content.clone(), full_text),
            None => (full_text, String::new()),
        };
        conversation.history.replace_last_answer(&content);
        conversation.history.attach_pictures(pictures);
        if !omits_artifacts {
            run.tally.artifacts.extend(result.artifacts.iter().cloned());
        }
        let artifacts = result.artifacts.iter().map(|artifact| artifact.kind.clone()).collect();
        run.emit(&new_event(content, artifacts));
        if !result.denied.is_empty() {
            run.emit_and_record(&[Event::AccessDenied {
                id: id.clone(),
                denied: result.denied.clone(),
            }]);
        }
        show_user(run, &result);
        run.emit_and_record(&changes);
        if let Some(truncated) = truncated {
            announce_truncation(run, id, &name, truncated, full_text);
        }
        result
    }
}

/// Sends the text that a result contains for the user to the output.
fn show_user(run: &RunState<'_>, result: &ToolResult) {
    let Some(text) = result.user_text() else {
        return;
    };
    let output = run.context.output();
    if catch_unwind(AssertUnwindSafe(|| output.communicate(text))).is_err() {
        tracing::warn!("the output sink panicked; the message is lost");
    }
}

/// Evaluates the strategies after a call, applies their changes to the tools, and writes the names of the new tools into
/// the result. Returns the events to emit.
fn inject(run: &mut RunState<'_>, call: &mut CompletedCall) -> Vec<Event> {
    // Another call of the session has changed the caller. The strategies would add tools of the caller of this call.
    if run.has_other_caller() {
        return Vec::new();
    }
    let numbered = catch_unwind(AssertUnwindSafe(|| number_objects(run, call)));
    let Some(injection) = evaluate(run, call).filter(|_| numbered.is_ok()) else {
        let trigger = call.name.clone();
        return vec![Event::StrategyFailed { trigger }];
    };
    let (discovered, listed) = (injection.discovered.clone(), injection.listed.clone());
    let notes = rejection_notes(&injection, &call.result);
    let withheld = injection
        .withheld
        .iter()
        .find(|withheld| withheld.name == call.name.as_str());
    let withheld = withheld.map(|withheld| withheld.reason.clone());
    let toolbox = &mut run.conversation.toolbox;
    let events = toolbox.apply(injection, &call.name);
    write_entity_tool_names(&mut call.result, &discovered, toolbox.entities(), toolbox.callable());
    write_facade_tool_names(&mut call.result, &listed, withheld.as_deref(), toolbox.callable());
    if !notes.is_empty() {
        call.result.for_llm = call.result.content() + &notes;
    }
    events
}

/// Returns a line for each object of a result whose methods do not become tools, with the reason. Objects that the tool itself
/// rejected are omitted, because its result contains their reasons.
fn rejection_notes(injection: &Injection, result: &ToolResult) -> String {
    let rejected = injection
        .rejected
        .iter()
        .filter(|rejected| !result.rejected.contains(rejected));
    let notes = rejected.map(|rejected| format!("\n[a `{}` has no tools: {}]", rejected.prefix, rejected.reason));
    notes.collect()
}

/// Gives numbers to the objects of a result that have no id and that no strategy claims.
fn number_objects(run: &mut RunState<'_>, call: &mut CompletedCall) {
    let conversation = &mut *run.conversation;
    let strategy = &conversation.strategy;
    let is_claimed = |provider: &dyn ToolProvider| strategy.claims(provider);
    conversation.toolbox.number_objects(&mut call.result, is_claimed);
}

/// Evaluates the strategies. Returns `None` if one of them panicked.
fn evaluate(run: &RunState<'_>, call: &CompletedCall) -> Option<Injection> {
    let context = InjectionContext::after(call, run.view());
    let strategy = &run.conversation.strategy;
    let injection = catch_unwind(AssertUnwindSafe(|| strategy.evaluate(&context)));
    if injection.is_err() {
        tracing::error!(tool = %call.name, "an injection strategy panicked; the tools do not change");
    }
    injection.ok()
}

/// Emits the event of a truncated result, and adds the tool that reads the full result. The event has the full text only
/// if the conversation has a journal. A resumed conversation reads the text from the journal.
fn announce_truncation(
    run: &mut RunState<'_>,
    id: String,
    name: &ToolName,
    truncated: TruncatedResult,
    full_text: String,
) {
    run.emit(&Event::ResultCut {
        id,
        result: truncated.name,
        bytes: full_text.len(),
        shown_bytes: truncated.shown_bytes,
        full: if run.conversation.journal.is_some() {
            full_text
        } else {
            String::new()
        },
    });
    let injection = run.conversation.read_result_injection();
    let events = run.conversation.toolbox.apply(injection, name);
    run.emit_and_record(&events);
}

/// The result of a call for the model, and the kind of its error if the call failed.
struct ToolAnswer {
    result: ToolResult,
    kind: Option<ErrorKind>,
}

impl ToolAnswer {
    fn error(error: &Error) -> Self {
        let mut result = ToolResult::error(error_text(error));
        result.denied = error.denied.clone();
        Self {
            result,
            kind: Some(error.kind),
        }
    }
}

/// Converts the outcome of a call to an answer, and logs errors. An error that only the operator can fix is added to
/// `end_requests`, and the answer omits its details.
fn convert_outcome(tool: &NamedTool, outcome: CallOutcome, end_requests: &mut EndRequests) -> ToolAnswer {
    let name = &tool.name;
    let error = match outcome {
        CallOutcome::Returned(returned) => match *returned {
            Ok(result) => {
                if let Some(source) = &result.source {
                    tracing::warn!(tool = %name, error = %source, "the tool failed");
                }
                let kind = result.is_error().then_some(ErrorKind::Tool);
                return ToolAnswer { result, kind };
            }
            Err(ToolError::Operator(error)) => {
                tracing::error!(tool = %name, error = %error, "the tool failed; the run stops");
                let error_for_model = hidden_operator_error(error.kind).with_denied(error.denied.clone());
                end_requests.add_operator_error(error.with_tool(name.as_str()));
                return ToolAnswer::error(&error_for_model);
            }
            Err(error) => Error::from(with_expected_parameters(error, &tool.definition, name)),
        },
        CallOutcome::Panicked => {
            tracing::error!(tool = %name, "the tool panicked");
            panicked_call().with_tool(name.as_str())
        }
        CallOutcome::NotPermitted(error) => error,
        CallOutcome::Abandoned => cancelled_call().with_tool(name.as_str()),
    };
    tracing::debug!(tool = %name, %error, "the call failed");
    ToolAnswer::error(&error)
}
