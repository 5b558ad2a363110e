//! The rows of a waterfall.

use std::collections::HashMap;

use serde::Serialize;

use crate::output::page::counted;
use toolwit::agent::{Event, InjectionCost, RecordedAnswer, RecordedUsage, TraceEntry};
use toolwit::model::TokenUsage;
use toolwit::tool::ToolName;

/// Maximum length of a detail, in characters.
const DETAIL_CHARS_MAX: usize = 160;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RowKind {
    /// The start of a turn.
    Turn,
    /// An inference, or a compaction of the history.
    Model,
    /// A call, a nested call, or a late result.
    Call,
    /// A change of the tools.
    Tools,
    /// A denied access, a decision about an approval, or the end of the run.
    Note,
}

/// A row of the waterfall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// The number of the event in the trace.
    pub(super) sequence: u64,
    pub(super) kind: RowKind,
    /// The indentation, in levels: 0 for a turn, 1 for the other events, 2 for a nested call, and one more for each call
    /// around it. The events of an agent that a tool runs are two levels deeper.
    pub(super) depth: usize,
    pub(super) name: String,
    /// The start, in milliseconds since the first event.
    pub(super) start_ms: u64,
    /// The duration in milliseconds, if the row has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wall_ms: Option<u64>,
    pub(super) is_error: bool,
    /// The fuel that the guest consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fuel: Option<u64>,
    /// The peak memory of the guest, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_bytes: Option<u64>,
    pub(super) detail: String,
}

impl Row {
    /// Returns the fuel and the memory as text. The text is empty if they were not recorded.
    pub(super) fn usage(&self) -> String {
        match (self.fuel, self.memory_bytes) {
            (Some(fuel), Some(bytes)) => format!("{fuel} fuel, {} KiB", bytes.div_ceil(1024)),
            _ => String::new(),
        }
    }

    /// Returns the end, in milliseconds since the first event.
    pub(super) fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.wall_ms.unwrap_or(0))
    }
}

/// Returns the rows of a trace, in the order of its events.
pub(super) fn trace_rows(entries: &[TraceEntry]) -> Vec<Row> {
    let first_ms = entries.iter().map(|entry| entry.at_ms).min().unwrap_or(0);
    let usage = usage_by_call(entries);
    let rows = entries.iter().filter_map(|entry| row(entry, first_ms, &usage));
    rows.collect()
}

/// The resource usage of the calls, by call id.
type UsageByCall<'e> = HashMap<&'e str, RecordedUsage>;

fn usage_by_call(entries: &[TraceEntry]) -> UsageByCall<'_> {
    let usage = entries.iter().filter_map(|entry| match &entry.event {
        Event::ToolReturned { id, outcome } => Some((id.as_str(), outcome.usage?)),
        Event::NestedCallFinished(call) => Some((call.id.as_str(), call.outcome.as_ref()?.usage?)),
        _ => None,
    });
    usage.collect()
}

fn row(entry: &TraceEntry, first_ms: u64, usage: &UsageByCall<'_>) -> Option<Row> {
    let (kind, name, wall_ms, detail) = row_content(&entry.event)?;
    let usage = match &entry.event {
        Event::ToolFinished { id, .. } => usage.get(id.as_str()).copied(),
        Event::NestedCallFinished(call) => usage.get(call.id.as_str()).copied(),
        _ => None,
    };
    let offset_ms = entry.at_ms.saturating_sub(first_ms);
    let depth_in_process = usize::from(kind != RowKind::Turn) + nesting_depth(&entry.event);
    Some(Row {
        sequence: entry.sequence,
        kind,
        depth: depth_in_process + 2 * usize::from(entry.origin.parent_call.is_some()),
        name,
        // The time of an event with a duration is the end of the inference or the call.
        start_ms: offset_ms.saturating_sub(wall_ms.unwrap_or(0)),
        wall_ms,
        is_error: is_error(&entry.event),
        fuel: usage.map(|usage| usage.fuel),
        memory_bytes: usage.map(|usage| usage.memory_bytes),
        detail: detail.chars().take(DETAIL_CHARS_MAX).collect(),
    })
}

/// Returns the number of calls around a nested call; 0 for another event. The id of a nested call has a `/` and a number for
/// each of them. Earlier versions did not record this id.
fn nesting_depth(event: &Event) -> usize {
    match event {
        Event::NestedCallFinished(call) => {
            let numbers = call.id.rsplit('/');
            let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
            numbers
                .take_while(is_number)
                .count()
                .clamp(1, call.id.matches('/').count().max(1))
        }
        _ => 0,
    }
}

fn is_error(event: &Event) -> bool {
    match event {
        Event::ToolFinished { is_error, .. } | Event::LateResult { is_error, .. } => *is_error,
        Event::NestedCallFinished(call) => call.is_error,
        Event::CallRefused { .. } | Event::AccessDenied { .. } | Event::StrategyFailed { .. } => true,
        _ => false,
    }
}

fn tokens_text(usage: &TokenUsage) -> String {
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    format!("{} + {} tokens{cached}", usage.input_tokens, usage.output_tokens)
}

/// Describes the cost of the tools that were injected since the previous inference.
fn injection_text(cost: InjectionCost) -> String {
    let source = match cost.measured_tokens {
        Some(_) => "measured",
        None => "estimated",
    };
    format!(", {} for injected tools ({source})", cost.tokens())
}

/// Returns the kind, the name, the duration in milliseconds and the detail of a row. `None` for an event without a row.
fn row_content(event: &Event) -> Option<(RowKind, String, Option<u64>, String)> {
    Some(match event {
        Event::TurnStarted { turn, prompt, .. } => {
            let prompt = prompt.clone().unwrap_or_default();
            (RowKind::Turn, format!("turn {turn}"), None, prompt)
        }
        Event::ModelAnswered {
            iteration,
            wall_ms,
            usage,
            content,
            tool_calls,
            injected,
            ..
        } => {
            let calls: Vec<_> = tool_calls.iter().map(|call| call.name.as_str()).collect();
            let response = if calls.is_empty() {
                content.clone()
            } else {
                format!("calls {}", calls.join(", "))
            };
            let injected = injected.map(injection_text).unwrap_or_default();
            let detail = format!("{}{injected}  {response}", tokens_text(usage));
            (RowKind::Model, format!("inference {iteration}"), Some(*wall_ms), detail)
        }
        Event::HistoryCompacted(event) => {
            let detail = format!("{}  {}", tokens_text(&event.usage), event.summary);
            (RowKind::Model, "compaction".to_owned(), Some(event.wall_ms), detail)
        }
        Event::ToolFinished {
            name, wall_ms, content, ..
        } => (RowKind::Call, name.to_string(), Some(*wall_ms), content.clone()),
        Event::NestedCallFinished(call) => {
            let error_kind = call.kind.map(|kind| kind.to_string()).unwrap_or_default();
            (RowKind::Call, call.tool.to_string(), Some(call.wall_ms), error_kind)
        }
        Event::LateResult { name, content, .. } => (RowKind::Call, format!("{name} (late)"), None, content.clone()),
        Event::CallRefused { name, content, .. } => (RowKind::Call, name.clone(), None, content.clone()),
        Event::ToolsInjected {
            names, prompt_bytes, ..
        } => tools_row("tools added", names, &format!("  {prompt_bytes} bytes")),
        Event::ToolsRemoved { names, .. } => tools_row("tools removed", names, ""),
        Event::ToolsEvicted { names } => tools_row("tools hidden", names, ""),
        Event::AccessDenied { denied, .. } => {
            let accesses: Vec<_> = denied
                .iter()
                .map(|access| format!("{}: {}", access.plugin, access.access))
                .collect();
            note_row("access denied", accesses.join(", "))
        }
        Event::StrategyFailed { trigger } => note_row(
            "strategy failed",
            format!("a strategy panicked at the result of {trigger}"),
        ),
        Event::ApprovalDecided(decided) => note_row("approval", format!("{}: {:?}", decided.tool, decided.decision)),
        Event::QuestionAsked(question) => note_row("question", format!("{}: {}", question.plugin, question.message)),
        Event::QuestionAnswered(answered) => note_row("answer", answer_text(answered)),
        Event::Finished {
            stop,
            iterations,
            tool_calls,
            ..
        } => {
            let (inferences, calls) = (counted(*iterations as usize, "inference"), counted(*tool_calls, "call"));
            note_row("end", format!("{stop:?}, {inferences}, {calls}"))
        }
        _ => return None,
    })
}

/// Returns the answer to a question of a plugin, or the reason why there is none.
fn answer_text(answered: &RecordedAnswer) -> String {
    match &answered.answer {
        Some(answer) => format!("{answer:?}"),
        None => answered.reason.clone().unwrap_or_default(),
    }
}

fn note_row(label: &str, detail: String) -> (RowKind, String, Option<u64>, String) {
    (RowKind::Note, label.to_owned(), None, detail)
}

fn tools_row(label: &str, names: &[ToolName], suffix: &str) -> (RowKind, String, Option<u64>, String) {
    let names: Vec<_> = names.iter().map(ToolName::as_str).collect();
    (
        RowKind::Tools,
        label.to_owned(),
        None,
        format!("{}{suffix}", names.join(" ")),
    )
}
