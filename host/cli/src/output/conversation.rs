//! The events of a conversation, as text.

use anstyle::Style;

use crate::output::page::{BAD, FAINT, GOOD, NAME, Page, TITLE, WARN};
use toolwit::agent::{Event, NestedCallStart, RecordedAnswer, RecordedApprovalDecision};
use toolwit::tool::{Answer, ApprovalBasis, ApprovalDecision, ToolCall, ToolName};

/// Width of the label column.
const LABEL_COLUMNS: usize = 11;

/// Width of the text column, for a terminal of 100 columns.
const TEXT_COLUMNS: usize = 88;

/// Maximum length of an excerpt of a result, of the arguments of a call or of a summary, in characters. The trace and
/// the history have the full text.
const EXCERPT_CHARS_MAX: usize = 400;

/// Writes the prompt of the user.
pub(crate) fn write_prompt(page: &mut Page, prompt: &str) {
    write_paragraph(page, TITLE, "you", prompt);
}

/// Writes the final answer of the model.
pub(crate) fn write_answer(page: &mut Page, text: &str) {
    write_paragraph(page, GOOD, "answer", text);
}

/// Writes a message of a tool to the user.
pub(crate) fn write_message(page: &mut Page, text: &str) {
    write_paragraph(page, GOOD, "message", text);
}

/// Writes the progress of a tool.
pub(crate) fn write_progress(page: &mut Page, text: &str) {
    write_paragraph(page, FAINT, "progress", text);
}

/// Writes a nested call that has finished. Writes nothing for any other event.
pub(crate) fn write_nested_call(page: &mut Page, event: &Event) {
    if let Event::NestedCallFinished(call) = event {
        let (tool, wall_ms) = (&call.tool, call.wall_ms);
        let text = match call.kind {
            None => format!("{tool} ({wall_ms} ms)"),
            Some(error_kind) => format!("{tool}, which failed: {error_kind} ({wall_ms} ms)"),
        };
        write_paragraph(page, FAINT, "  called", &text);
    }
}

/// Writes the tool calls of a model's response.
pub(crate) fn write_calls(page: &mut Page, tool_calls: &[ToolCall]) {
    for ToolCall { name, arguments, .. } in tool_calls {
        let arguments = if arguments.trim() == "{}" { "" } else { arguments };
        write_paragraph(page, NAME, "calls", &format!("{name} {}", excerpt(arguments)));
    }
}

/// Writes a decision that another process stored about a call: a denial with its reason, or an approval.
pub(crate) fn write_stored_decision(page: &mut Page, denial_reason: Option<&str>) {
    match denial_reason {
        Some(reason) => write_paragraph(page, WARN, "denied", &format!("by another process: {reason}")),
        None => write_paragraph(page, GOOD, "allowed", "by another process"),
    }
}

/// Writes an event, if it is of interest to people. Does not write the final answer; see [`write_answer`].
pub(crate) fn write_event(page: &mut Page, event: &Event) {
    match event {
        Event::ModelAnswered {
            content, tool_calls, ..
        } if !tool_calls.is_empty() => {
            page.gap();
            if !content.trim().is_empty() {
                write_paragraph(page, TITLE, "model", content.trim());
            }
            write_calls(page, tool_calls);
        }
        Event::ToolFinished {
            is_error: false,
            content,
            ..
        } => write_paragraph(page, FAINT, "result", &excerpt(content)),
        Event::ToolFinished { content, .. } => write_paragraph(page, BAD, "error", &excerpt(content)),
        Event::CallRefused { content, .. } => write_paragraph(page, BAD, "refused", &excerpt(content)),
        Event::HistoryCompacted(event) => write_paragraph(page, FAINT, "summary", &excerpt(&event.summary)),
        Event::ToolsInjected { names, .. } => write_tools(page, "new tools", names),
        Event::ToolsRemoved { names, .. } => write_tools(page, "removed", names),
        Event::ToolsEvicted { names } => write_tools(page, "hidden", names),
        Event::ToolsRestored { names } => write_tools(page, "restored", names),
        Event::ProviderInvalid { kind, reason } => {
            write_paragraph(
                page,
                WARN,
                "warning",
                &format!("the methods of a `{kind}` cannot become tools: {reason}"),
            );
        }
        _ => {}
    }
}

/// Returns the answer to a question of a plugin, or the reason why there is none.
fn answer_text(recorded: &RecordedAnswer) -> String {
    match (&recorded.answer, &recorded.reason) {
        (Some(Answer::Accepted(values)), _) => excerpt(&serde_json::Value::Object(values.clone()).to_string()),
        (Some(Answer::Declined), _) => "declined".to_owned(),
        (Some(Answer::Cancelled), _) => "cancelled".to_owned(),
        (None, reason) => format!(
            "none{}",
            reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
        ),
    }
}

/// Writes an event of a stored conversation, if it is of interest to people.
pub(crate) fn write_recorded_event(page: &mut Page, event: &Event) {
    match event {
        Event::TurnStarted {
            prompt: Some(prompt), ..
        } => write_prompt(page, prompt),
        Event::PicturesAttached(attached) => {
            let types: Vec<_> = attached
                .pictures
                .iter()
                .map(|picture| picture.media_type.as_str())
                .collect();
            write_paragraph(page, FAINT, "pictures", &types.join(", "));
        }
        Event::MessagePinned => {
            write_paragraph(page, FAINT, "pinned", "the last message; summaries leave it unchanged")
        }
        Event::ModelAnswered {
            content, tool_calls, ..
        } if tool_calls.is_empty() => write_answer(page, content.trim()),
        Event::ToolStarted {
            id,
            name,
            start: Some(start),
            ..
        } => write_paragraph(
            page,
            FAINT,
            "started",
            &format!("{name}, {}, call {id}", start.effect.class),
        ),
        Event::NestedCallStarted(call) => write_nested_start(page, call),
        Event::NestedCallFinished(call) => {
            let end = call
                .kind
                .map_or_else(|| "done".to_owned(), |kind| format!("failed: {kind}"));
            write_paragraph(
                page,
                FAINT,
                "  ended",
                &format!("{}, {end}, call {}", call.tool, call.id),
            );
        }
        Event::AnswerInterrupted { content } => {
            write_paragraph(page, WARN, "partial", &format!("{} …", content.trim()))
        }
        Event::CallResolved { id, resolution } => {
            write_paragraph(page, WARN, "decided", &format!("call {id}: {resolution:?}"));
        }
        Event::RunResumed { changed, .. } => write_paragraph(page, WARN, "resumed", &resume_text(changed)),
        Event::ApprovalRequested(question) => {
            write_paragraph(
                page,
                WARN,
                "asked",
                &format!("{} needs an approval, call {}", question.name, question.id),
            );
        }
        Event::ApprovalDecided(recorded) => write_paragraph(page, FAINT, "answer", &decision_text(recorded)),
        Event::QuestionAsked(question) => {
            write_paragraph(
                page,
                WARN,
                "question",
                &format!("{} asks: {}", question.plugin, question.message),
            );
        }
        Event::QuestionAnswered(recorded) => write_paragraph(page, FAINT, "answer", &answer_text(recorded)),
        other => write_event(page, other),
    }
}

/// Writes the start of a stored nested call, with its arguments if they were recorded.
fn write_nested_start(page: &mut Page, call: &NestedCallStart) {
    let details = call.start.as_ref().map(|start| {
        let arguments = serde_json::to_string(&start.arguments).unwrap_or_default();
        format!(" {}, {}", excerpt(&arguments), start.effect.class)
    });
    let text = format!("{}{}, call {}", call.tool, details.unwrap_or_default(), call.id);
    write_paragraph(page, FAINT, "  started", &text);
}

/// Describes how a run was resumed. `changed_tools` are the tools that have changed since their last call.
fn resume_text(changed_tools: &[ToolName]) -> String {
    let names: Vec<_> = changed_tools.iter().map(ToolName::as_str).collect();
    match names[..] {
        [] => "in another process".to_owned(),
        _ => format!(
            "in another process; changed since their last call: {}",
            names.join(", ")
        ),
    }
}

/// Describes a decision about a call.
fn decision_text(recorded: &RecordedApprovalDecision) -> String {
    let decision = match recorded.decision {
        ApprovalDecision::Approved => "allowed",
        ApprovalDecision::Edited => "allowed with other arguments",
        ApprovalDecision::Denied => "denied",
        ApprovalDecision::Cancelled => "cancelled",
        _ => "not answered",
    };
    let basis = match recorded.basis {
        ApprovalBasis::Stored => "by another process, ",
        ApprovalBasis::Memory => "by an earlier answer, ",
        ApprovalBasis::Policy => "by the policy, ",
        _ => "",
    };
    format!("{decision}, {basis}call {}", recorded.id)
}

fn write_tools(page: &mut Page, label: &str, names: &[ToolName]) {
    let names: Vec<_> = names.iter().map(ToolName::as_str).collect();
    write_paragraph(page, WARN, label, &names.join(" "));
}

/// Writes a label and, next to it, a text that is wrapped between words.
fn write_paragraph(page: &mut Page, style: Style, label: &str, text: &str) {
    page.styled(style, label)
        .spaces(LABEL_COLUMNS.saturating_sub(label.len()));
    for (index, line) in text.lines().flat_map(wrap_line).enumerate() {
        if index > 0 {
            page.spaces(LABEL_COLUMNS);
        }
        page.text(line).end();
    }
    if text.is_empty() {
        page.end();
    }
}

/// Wraps a line after spaces and commas. A word that is longer than a line gets its own line and is not broken.
fn wrap_line(line: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut end, mut columns) = (0, 0, 0);
    for word in line.split_inclusive([' ', ',']) {
        let width = word.trim_end().chars().count();
        if columns > 0 && columns + width > TEXT_COLUMNS {
            lines.push(line[start..end].trim_end());
            (start, columns) = (end, 0);
        }
        end += word.len();
        columns += word.chars().count();
    }
    lines.push(line[start..].trim_end());
    lines
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_all_words() {
        let text = format!("{} {} {}", "a".repeat(60), "b".repeat(40), "é".repeat(120));
        let lines = wrap_line(&text);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap_line(""), [""]);
    }

    #[test]
    fn nested_call_is_written_with_its_error() {
        let text = |kind: Option<&str>| {
            let mut page = Page::new();
            let event = serde_json::json!({
                "event": "nested_call_finished", "id": "1", "number": 1, "tool": "native#look", "wall_ms": 7,
                "is_error": false, "kind": kind,
            });
            // An event of an earlier version has no parent and no outcome.
            write_nested_call(&mut page, &serde_json::from_value(event).unwrap());
            page.to_string()
        };
        assert!(text(None).contains("native#look (7 ms)"));
        assert!(text(Some("denied")).contains("native#look, which failed: denied (7 ms)"));
    }

    #[test]
    fn long_result_is_cut_between_characters() {
        let text = excerpt(&"é".repeat(EXCERPT_CHARS_MAX + 1));
        assert_eq!(text.chars().count(), EXCERPT_CHARS_MAX + 1);
        assert!(text.ends_with('…'));
    }
}
