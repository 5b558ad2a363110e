//! The first request or call of a replay that differs from its trace.

use serde::Serialize;
use serde_json::Value;

use super::line_diff::{limit_diff, line_diff};
use crate::event::{Event, RecordedStart, TraceEntry, visible_tools};
use crate::journal::messages;
use crate::model::ChatRequest;
use crate::state::{cancelled_call, error_text};
use toolwit_core::{Arguments, Error, ErrorKind, Message, Phase, Role, ToolId};

/// A request to the model or a call that differs from the trace of a replay. A call differs if it has another tool or
/// other arguments. The replay ends with this request or call, because the trace has no answer to it. Events before it that
/// differ are [differences](super::Difference).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("the replay differs from event {sequence} of the trace: {subject}\n{}", diff.join("\n"))]
#[non_exhaustive]
pub struct Divergence {
    /// The number of the event in the trace.
    pub sequence: u64,
    /// The request or the call that differs.
    pub subject: String,
    /// The lines that differ: recorded lines begin with `-`, replayed lines with `+`. Their number and length are
    /// limited, and they contain only printable characters. If no line differs, a single line lists the parts of the
    /// request of which the trace has only the digest.
    pub diff: Vec<String>,
}

impl From<Divergence> for Error {
    fn from(divergence: Divergence) -> Self {
        Self::new(ErrorKind::Configuration, Phase::Execute, divergence.to_string())
            .with_suggestion(SUGGESTION)
            .with_source(divergence)
    }
}

/// The suggestion for a divergence.
pub(super) const SUGGESTION: &str = "replay with the tools and the settings of the recorded run";

impl Divergence {
    fn new(sequence: u64, subject: String, recorded: &str, replayed: &str) -> Self {
        let mut diff = limit_diff(line_diff(recorded, replayed));
        if diff.is_empty() {
            let reason =
                "the instructions, the definitions of the tools or the options differ; the trace has their digest only";
            diff.push(reason.to_owned());
        }
        Self {
            sequence,
            subject,
            diff,
        }
    }

    /// Describes a request to the model that differs from the request that the event `sequence` of the trace announced.
    pub(super) fn of_request(entries: &[TraceEntry], sequence: u64, request: &ChatRequest<'_>) -> Self {
        let conversation_entries = entries.iter().filter(|entry| entry.origin.parent_call.is_none());
        let earlier_entries = conversation_entries.take_while(|entry| entry.sequence < sequence);
        let recorded_messages = messages(earlier_entries.clone(), &error_text(&cancelled_call()));
        let tools = visible_tools(earlier_entries.map(|entry| &entry.event));
        let recorded = request_text(tools.iter().map(ToString::to_string), &recorded_messages);
        let names = request.tools.iter().map(|tool| tool.name.to_string());
        let replayed = request_text(names, request.messages);
        Self::new(
            sequence,
            "another request to the model".to_owned(),
            &recorded,
            &replayed,
        )
    }

    /// Describes a call that the trace does not have, or that it has with another tool or other arguments.
    pub(super) fn of_call(
        sequence: u64,
        id: &str,
        recorded: Option<(&ToolId, Option<&RecordedStart>)>,
        replayed: (&ToolId, Option<&RecordedStart>),
    ) -> Self {
        let recorded = recorded.map_or_else(String::new, |(tool, start)| call_text(tool, start));
        let replayed = call_text(replayed.0, replayed.1);
        Self::new(
            sequence,
            format!("another start of the call `{id}`"),
            &recorded,
            &replayed,
        )
    }
}

/// Returns whether two starts of a call have the same arguments. Returns `true` if a start is missing.
pub(super) fn has_same_arguments(left: Option<&RecordedStart>, right: Option<&RecordedStart>) -> bool {
    left.zip(right)
        .is_none_or(|(left, right)| left.arguments == right.arguments)
}

/// Returns the tool and the arguments of a call as text: a line for the tool, and a line for each argument.
fn call_text(tool: &ToolId, start: Option<&RecordedStart>) -> String {
    let mut lines = vec![format!("tool: {tool}")];
    lines.extend(start.into_iter().flat_map(|start| argument_lines(&start.arguments)));
    lines.join("\n")
}

/// Returns the lines in which the arguments differ, in the format of [`Divergence::diff`].
pub(crate) fn arguments_diff(recorded: &Arguments, replayed: &Arguments) -> Vec<String> {
    let text = |arguments| argument_lines(arguments).join("\n");
    limit_diff(line_diff(&text(recorded), &text(replayed)))
}

/// Returns the arguments as lines in alphabetical order.
fn argument_lines(arguments: &Arguments) -> Vec<String> {
    let lines = arguments
        .iter()
        .map(|(name, value)| format!("{name}: {}", canonical_json(value)));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Returns the tools and the messages of a request as lines of text, without the system message, which a trace does not
/// have.
fn request_text(tools: impl Iterator<Item = String>, messages: &[Message]) -> String {
    let mut lines: Vec<_> = tools.map(|name| format!("tool: {name}")).collect();
    for message in messages {
        let role = match &message.role {
            Role::System { .. } => continue,
            Role::User { .. } => "user",
            Role::Assistant { .. } => "model",
            Role::Tool { .. } => "result",
        };
        lines.push(format!("{role}: {}", message.content()));
        let calls = message.tool_calls().iter();
        lines.extend(calls.map(|call| format!("call: {} {}", call.name, call.arguments)));
    }
    lines.join("\n")
}

/// Returns a value as JSON text. The fields of all objects are in alphabetical order.
fn canonical_json(value: &Value) -> String {
    fn with_sorted_fields(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.clone(), with_sorted_fields(value)));
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.iter().map(with_sorted_fields).collect(),
            scalar => scalar.clone(),
        }
    }
    with_sorted_fields(value).to_string()
}

/// Returns the id of a call that did not start, if the event answers such a call: with a refusal or with guidance.
/// Returns `None` for other events.
pub(super) fn unstarted_call_id(event: &Event) -> Option<&str> {
    match event {
        Event::CallRefused { id, .. } | Event::CallGuided { id, .. } => Some(id),
        _ => None,
    }
}
