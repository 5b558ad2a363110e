//! A conversation as people read it, turn by turn.

use anstyle::Style;

use crate::output::page::{BAD, FAINT, GOOD, NAME, Page, TITLE, WARN};
use toolwit::agent::Event;
use toolwit::tool::{ToolCall, ToolName};

/// How wide the column is that says who speaks.
const LABEL_COLUMNS: usize = 11;

/// How wide the text beside it is; a terminal of 100 columns shows it whole.
const TEXT_COLUMNS: usize = 88;

/// How much of a result is shown, in characters. The whole is in the trace and in the history.
const RESULT_CHARS_MAX: usize = 400;

/// Tells what the user asks.
pub(crate) fn question(page: &mut Page, prompt: &str) {
    paragraph(page, TITLE, "you", prompt);
}

/// Tells what the model answers in the end.
pub(crate) fn answer(page: &mut Page, text: &str) {
    paragraph(page, GOOD, "answer", text);
}

/// Tells what a tool says to the user.
pub(crate) fn message(page: &mut Page, text: &str) {
    paragraph(page, GOOD, "message", text);
}

/// Tells of a call that a tool made, for those who want details.
pub(crate) fn nested(page: &mut Page, event: &Event) {
    if let Event::NestedCallFinished {
        tool, wall_ms, kind, ..
    } = event
    {
        match kind {
            None => paragraph(page, FAINT, "  called", &format!("{tool} ({wall_ms} ms)")),
            Some(kind) => paragraph(
                page,
                FAINT,
                "  called",
                &format!("{tool}, which failed: {kind} ({wall_ms} ms)"),
            ),
        }
    }
}

/// Tells an event, where a person wants to know of it. The answer is not told here.
pub(crate) fn event(page: &mut Page, event: &Event) {
    match event {
        Event::ModelAnswered {
            content, tool_calls, ..
        } if !tool_calls.is_empty() => {
            page.gap();
            if !content.trim().is_empty() {
                paragraph(page, TITLE, "model", content.trim());
            }
            for ToolCall { name, arguments, .. } in tool_calls {
                let arguments = if arguments.trim() == "{}" { "" } else { arguments };
                paragraph(page, NAME, "calls", &format!("{name} {}", excerpt(arguments)));
            }
        }
        Event::ToolFinished {
            is_error: false,
            content,
            ..
        } => paragraph(page, FAINT, "result", &excerpt(content)),
        Event::ToolFinished { content, .. } => paragraph(page, BAD, "error", &excerpt(content)),
        Event::CallRefused { content, .. } => paragraph(page, BAD, "refused", &excerpt(content)),
        Event::ToolsInjected { names, .. } => tools(page, "new tools", names),
        Event::ToolsRemoved { names, .. } => tools(page, "gone", names),
        Event::ToolsEvicted { names } => tools(page, "hidden", names),
        Event::ToolsRestored { names } => tools(page, "back", names),
        Event::ProviderInvalid { kind, reason } => {
            paragraph(
                page,
                WARN,
                "warning",
                &format!("a `{kind}` cannot become tools: {reason}"),
            );
        }
        _ => {}
    }
}

fn tools(page: &mut Page, label: &str, names: &[ToolName]) {
    let names: Vec<_> = names.iter().map(ToolName::as_str).collect();
    paragraph(page, WARN, label, &names.join(" "));
}

/// Writes a text beside its label, broken between words.
fn paragraph(page: &mut Page, style: Style, label: &str, text: &str) {
    page.styled(style, label)
        .indent(LABEL_COLUMNS.saturating_sub(label.len()));
    for (index, line) in text.lines().flat_map(broken).enumerate() {
        if index > 0 {
            page.indent(LABEL_COLUMNS);
        }
        page.text(line).end();
    }
    if text.is_empty() {
        page.end();
    }
}

/// Breaks a line after spaces and commas; a word that is longer than a line stands on one of its own.
fn broken(line: &str) -> Vec<&str> {
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
    match text.char_indices().nth(RESULT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_broken_between_words_and_loses_none() {
        let text = format!("{} {} {}", "a".repeat(60), "b".repeat(40), "é".repeat(120));
        let lines = broken(&text);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(broken(""), [""]);
    }

    #[test]
    fn a_call_that_a_tool_made_is_told_when_it_has_ended() {
        let told = |kind| {
            let mut page = Page::new();
            let event = Event::NestedCallFinished {
                id: "1".to_owned(),
                number: 1,
                tool: toolwit::tool::ToolId::native("look"),
                wall_ms: 7,
                is_error: false,
                kind,
            };
            nested(&mut page, &event);
            page.to_string()
        };
        assert!(told(None).contains("native#look (7 ms)"));
        assert!(told(Some(toolwit::ErrorKind::Denied)).contains("native#look, which failed: denied (7 ms)"));
    }

    #[test]
    fn a_long_result_is_cut_between_characters() {
        let shown = excerpt(&"é".repeat(RESULT_CHARS_MAX + 1));
        assert_eq!(shown.chars().count(), RESULT_CHARS_MAX + 1);
        assert!(shown.ends_with('…'));
    }
}
