//! The question about a call: exactly what will run.

use anstyle::Style;

use crate::output::page::{BAD, FAINT, NAME, Page, WARN, counted};
use crate::output::printer::escape_controls;
use toolwit::Arguments;
use toolwit::agent::RecordedApprovalRequest;
use toolwit::tool::{ApprovalRequest, Effect, EffectClass, ToolId};

/// The prompt for an answer.
pub(super) const PROMPT: &str = "run it? [y]es, [n]o, [e]dit, [?] more: ";

/// The prompt for edited arguments.
pub(super) const EDIT_PROMPT: &str = "new arguments, as a JSON object in one line: ";

/// Returns the question about a call.
pub(super) fn question(request: &ApprovalRequest) -> Page {
    let mut page = Page::new();
    let rule = request.access.writing_rule.as_deref();
    ShownCall {
        name: &request.name,
        tool: &request.tool,
        effect: request.access.effect,
        changes: rule.filter(|_| request.access.effect.class == EffectClass::Write),
        grant: &request.access.grant,
        callers: &request.callers,
        arguments: &request.arguments,
    }
    .write(&mut page);
    if request.waiting > 0 {
        let waiting = counted(request.waiting, "more call");
        let verb = if request.waiting == 1 { "waits" } else { "wait" };
        field(&mut page, "then", format_args!("{waiting} {verb} for your answer"));
    }
    rejected_edit(&mut page, request.rejected_edit.as_deref());
    page
}

/// Returns the question about a call that waits for an answer of another process.
pub(crate) fn pending_question(question: &RecordedApprovalRequest) -> Page {
    let mut page = Page::new();
    ShownCall {
        name: &question.name,
        tool: &question.tool,
        effect: question.effect,
        changes: None,
        grant: &question.grant,
        callers: &question.callers,
        arguments: &question.arguments,
    }
    .write(&mut page);
    field(&mut page, "call", &question.id);
    rejected_edit(&mut page, question.rejected_edit.as_deref());
    page
}

fn rejected_edit(page: &mut Page, reason: Option<&str>) {
    if let Some(reason) = reason {
        page.styled(BAD, "error:")
            .text(" the arguments were not accepted: ")
            .text(reason)
            .end();
    }
}

/// A call as a person reads it.
struct ShownCall<'a> {
    name: &'a str,
    tool: &'a ToolId,
    effect: Effect,
    /// The rule by which the call may change something.
    changes: Option<&'a str>,
    grant: &'a [String],
    callers: &'a [ToolId],
    arguments: &'a Arguments,
}

impl ShownCall<'_> {
    fn write(&self, page: &mut Page) {
        page.styled(WARN, "approve").text("    ").styled(NAME, self.name).end();
        field(page, "tool", self.tool);
        field(page, "effect", self.effect);
        if let Some(rule) = self.changes {
            field(page, "changes", format_args!("it may use `{rule}`"));
        }
        for rule in self.grant {
            field(page, "grant", rule);
        }
        if !self.callers.is_empty() {
            let callers: Vec<_> = self.callers.iter().map(ToString::to_string).collect();
            field(page, "called by", callers.join(" → "));
        }
        if self.arguments.is_empty() {
            field(page, "arguments", "none");
        } else {
            field(page, "arguments", "");
            // The arguments are not shortened, because a person approves all of them.
            let arguments = serde_json::to_string_pretty(self.arguments).unwrap_or_default();
            page.block(4, Style::new(), &escape_controls(&arguments));
        }
    }
}

fn field(page: &mut Page, label: &str, value: impl std::fmt::Display) {
    page.indent(2)
        .styled(FAINT, label)
        .indent(11_usize.saturating_sub(label.len()))
        .text(value)
        .end();
}

/// Returns an explanation of the answers.
pub(super) fn help() -> Page {
    let mut page = Page::new();
    for (answer, meaning) in [
        ("y", "run it"),
        ("n TEXT", "do not run it; the model reads the text"),
        ("e", "run it with other arguments"),
        ("r", "run it, and every call of this tool in this run"),
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
