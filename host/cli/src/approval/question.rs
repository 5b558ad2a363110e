//! The question about a call, with the exact call that will run.

use anstyle::Style;

use crate::output::page::{BAD, FAINT, NAME, Page, WARN, counted, visible};
use crate::output::printer::escape_controls;
use toolwit::Arguments;
use toolwit::agent::RecordedApprovalRequest;
use toolwit::tool::{ApprovalRequest, Effect, EffectClass, ToolId};

/// The prompt for an answer.
pub(super) const PROMPT: &str = "run it? [y]es, [n]o, [e]dit, [?] more: ";

/// The prompt for edited arguments.
pub(super) const EDIT_PROMPT: &str = "new arguments, as a JSON object in one line: ";

/// Returns the question that the person at the terminal answers.
pub(super) fn question(request: &ApprovalRequest) -> Page {
    let mut page = Page::new();
    // If the operator set the effect class to read, the rule that allows a change is not shown.
    let writing_rule = request.access.writing_rule.as_deref();
    ShownCall {
        name: &request.name,
        tool: &request.tool,
        effect: request.access.effect,
        writing_rule: writing_rule.filter(|_| request.access.effect.class == EffectClass::Write),
        grant: &request.access.grant,
        callers: &request.callers,
        arguments: &request.arguments,
    }
    .write(&mut page);
    if request.waiting > 0 {
        let further_calls = counted(request.waiting, "more call");
        let verb = if request.waiting == 1 { "waits" } else { "wait" };
        write_field(
            &mut page,
            "then",
            format_args!("{further_calls} {verb} for your answer"),
        );
    }
    write_rejected_edit(&mut page, request.rejected_edit.as_deref());
    page
}

/// Returns a question that is stored in a session.
pub(crate) fn pending_question(question: &RecordedApprovalRequest) -> Page {
    let mut page = Page::new();
    ShownCall {
        name: &question.name,
        tool: &question.tool,
        effect: question.effect,
        // A `RecordedApprovalRequest` does not contain the rule.
        writing_rule: None,
        grant: &question.grant,
        callers: &question.callers,
        arguments: &question.arguments,
    }
    .write(&mut page);
    write_field(&mut page, "call", &question.id);
    write_rejected_edit(&mut page, question.rejected_edit.as_deref());
    page
}

/// Writes the reason why the edited arguments of the previous answer were refused, if there is one.
fn write_rejected_edit(page: &mut Page, reason: Option<&str>) {
    if let Some(reason) = reason {
        page.styled(BAD, "error:")
            .text(" the arguments were not accepted: ")
            .text(reason)
            .end();
    }
}

/// The details of a call that a person reads before answering the question.
struct ShownCall<'a> {
    name: &'a str,
    tool: &'a ToolId,
    effect: Effect,
    /// The rule of the grant that lets the call change something, such as a file.
    writing_rule: Option<&'a str>,
    grant: &'a [String],
    callers: &'a [ToolId],
    arguments: &'a Arguments,
}

impl ShownCall<'_> {
    fn write(&self, page: &mut Page) {
        page.styled(WARN, "approve").text("    ").styled(NAME, self.name).end();
        write_field(page, "tool", self.tool);
        write_field(page, "effect", self.effect);
        if let Some(rule) = self.writing_rule {
            write_field(page, "changes", format_args!("allowed by `{rule}`"));
        }
        for rule in self.grant {
            write_field(page, "grant", rule);
        }
        if !self.callers.is_empty() {
            let callers: Vec<_> = self.callers.iter().map(ToString::to_string).collect();
            write_field(page, "called by", callers.join(" → "));
        }
        if self.arguments.is_empty() {
            write_field(page, "arguments", "none");
        } else {
            write_field(page, "arguments", "");
            // The arguments are not shortened, because a person approves all of them.
            let arguments = serde_json::to_string_pretty(self.arguments).unwrap_or_default();
            page.block(4, Style::new(), &escape_controls(&arguments));
        }
    }
}

fn write_field(page: &mut Page, label: &str, value: impl std::fmt::Display) {
    page.spaces(2)
        .styled(FAINT, label)
        .spaces(11_usize.saturating_sub(label.len()))
        .text(visible(value))
        .end();
}

/// Returns the list of the possible answers.
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
        page.spaces(2)
            .styled(NAME, answer)
            .spaces(8_usize.saturating_sub(answer.len()))
            .text(meaning)
            .end();
    }
    page.spaces(2)
        .styled(
            FAINT,
            "an answer is no longer valid when the tool, its code, its effect class or its grant changes",
        )
        .end();
    page
}
