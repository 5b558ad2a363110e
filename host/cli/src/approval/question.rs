//! The question about a call: exactly what will run.

use anstyle::Style;

use crate::output::page::{BAD, FAINT, NAME, Page, WARN};
use crate::output::printer::escape_controls;
use toolwit::tool::{ApprovalRequest, EffectClass};

/// The answers, in one line.
pub(super) const PROMPT: &str = "run it? [y]es, [n]o, [e]dit, [?] more: ";

/// The prompt for edited arguments.
pub(super) const EDIT_PROMPT: &str = "new arguments, as a JSON object in one line: ";

/// Writes the call that waits.
pub(super) fn question(request: &ApprovalRequest) -> Page {
    let mut page = Page::new();
    page.styled(WARN, "approve")
        .text("    ")
        .styled(NAME, &request.name)
        .end();
    field(&mut page, "tool", &request.tool);
    field(&mut page, "effect", request.access.effect);
    if let Some(rule) = &request.access.writing_rule
        && request.access.effect.class == EffectClass::Write
    {
        field(&mut page, "changes", format_args!("it may use `{rule}`"));
    }
    for rule in &request.access.grant {
        field(&mut page, "grant", rule);
    }
    if !request.callers.is_empty() {
        let callers: Vec<_> = request.callers.iter().map(ToString::to_string).collect();
        field(&mut page, "called by", callers.join(" → "));
    }
    if request.arguments.is_empty() {
        field(&mut page, "arguments", "none");
    } else {
        field(&mut page, "arguments", "");
        // Nothing is cut: a person approves all of it.
        let arguments = serde_json::to_string_pretty(&request.arguments).unwrap_or_default();
        page.block(4, Style::new(), &escape_controls(&arguments));
    }
    if let Some(reason) = &request.rejected_edit {
        page.styled(BAD, "error:")
            .text(" the arguments were not accepted: ")
            .text(reason)
            .end();
    }
    page
}

fn field(page: &mut Page, label: &str, value: impl std::fmt::Display) {
    page.indent(2)
        .styled(FAINT, label)
        .indent(11_usize.saturating_sub(label.len()))
        .text(value)
        .end();
}

/// Writes what the answers mean.
pub(super) fn help() -> Page {
    let mut page = Page::new();
    for (answer, meaning) in [
        ("y", "run it"),
        ("n TEXT", "do not run it; the model reads the text"),
        ("e", "run it with other arguments"),
        ("r", "run it, and every call of this tool until the answer of this run"),
        ("s", "run it, and every call of this tool in this conversation"),
        ("a", "run it, and every call with these arguments for 30 days"),
        ("t", "run it, and every call of this tool for 30 days"),
    ] {
        page.indent(2)
            .styled(NAME, answer)
            .indent(8_usize.saturating_sub(answer.len()))
            .text(meaning)
            .end();
    }
    page.indent(2)
        .styled(
            FAINT,
            "an answer ends when the tool, its code, its effect class or its grant changes",
        )
        .end();
    page
}
