//! The parts of a request that the expectations and the references of a script read.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{ChatRequest, DeclaredTool};
use toolwit_core::{Message, Role};

/// Maximum length of a text excerpt in an error message, in characters.
const EXCERPT_CHARS_MAX: usize = 200;

/// Maximum number of names that an error message lists.
const NAMES_MAX: usize = 20;

/// Minimum Jaro–Winkler similarity between an expected name and a declared name that an error message suggests instead.
const SIMILARITY_MIN: f64 = 0.7;

/// The messages and the tools of a request, to which a script can refer.
#[derive(Clone, Copy)]
pub(super) struct RequestView<'a> {
    messages: &'a [Message],
    tools: &'a [DeclaredTool],
}

/// A tool result in the history.
#[derive(Clone, Copy)]
pub(super) struct ToolResultView<'a> {
    pub(super) tool: &'a str,
    pub(super) text: &'a str,
    pub(super) is_error: bool,
}

impl<'a> RequestView<'a> {
    pub(super) fn new(request: ChatRequest<'a>) -> Self {
        Self {
            messages: request.messages,
            tools: request.tools,
        }
    }

    pub(super) fn declares(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name.as_str() == name)
    }

    /// Lists the declared tools for an error message. Adds the declared name that is most similar to `name`, if it is similar
    /// enough.
    pub(super) fn describe_tools(&self, name: &str) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        if names.is_empty() {
            return "no tool is declared".to_owned();
        }
        let mut text = format!("the declared tools are {}", quoted_list(&names));
        let similarity = |declared: &&str| strsim::jaro_winkler(name, declared);
        let nearest = names
            .iter()
            .copied()
            .max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        if let Some(nearest) = nearest.filter(|nearest| similarity(nearest) >= SIMILARITY_MIN) {
            let _ = write!(text, "; the most similar is `{nearest}`");
        }
        text
    }

    /// Returns the user's latest message, if there is one.
    pub(super) fn prompt(&self) -> Option<&'a str> {
        self.messages.iter().rev().find_map(|message| match &message.role {
            Role::User { content } => Some(content.as_str()),
            _ => None,
        })
    }

    /// Returns the latest result of this tool, or of any tool if `tool` is `None`.
    pub(super) fn last_result(&self, tool: Option<&str>) -> Option<ToolResultView<'a>> {
        let mut results = self.messages.iter().rev().filter_map(tool_result);
        results.find(|result| tool.is_none_or(|tool| result.tool == tool))
    }

    /// Returns the results since the model's previous response, in call order.
    pub(super) fn latest_results(&self) -> Vec<ToolResultView<'a>> {
        let is_response = |message: &Message| matches!(message.role, Role::Assistant { .. });
        let start = self
            .messages
            .iter()
            .rposition(is_response)
            .map_or(0, |position| position + 1);
        self.messages[start..].iter().filter_map(tool_result).collect()
    }
}

impl ToolResultView<'_> {
    /// Parses the text of the result as JSON. A text that is not JSON becomes a string value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(self.text).unwrap_or_else(|_| Value::String(self.text.to_owned()))
    }
}

/// Quotes a text for an error message, truncated to [`EXCERPT_CHARS_MAX`].
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Lists names for an error message: at most [`NAMES_MAX`] names, and the number of further names.
pub(super) fn quoted_list(names: &[&str]) -> String {
    let listed: Vec<String> = names.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => listed.join(", "),
        omitted => format!("{} and {omitted} more", listed.join(", ")),
    }
}

fn tool_result(message: &Message) -> Option<ToolResultView<'_>> {
    match &message.role {
        Role::Tool {
            name,
            content,
            is_error,
            ..
        } => Some(ToolResultView {
            tool: name,
            text: content,
            is_error: *is_error,
        }),
        _ => None,
    }
}
