//! What a scripted model was shown: the part of a request that expectations and references read.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{ChatRequest, DeclaredTool};
use toolwit_core::{Message, Role};

/// How much of a text an error message shows, in characters.
const EXCERPT_CHARS_MAX: usize = 200;

/// How many names an error message lists.
const NAMES_MAX: usize = 20;

/// How alike two names must be for one to be suggested for the other.
const LIKENESS_MIN: f64 = 0.7;

/// A view of a request.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    messages: &'a [Message],
    tools: &'a [DeclaredTool],
}

/// A tool's answer in the history.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) tool: &'a str,
    pub(super) text: &'a str,
    pub(super) is_error: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new(request: ChatRequest<'a>) -> Self {
        Self {
            messages: request.messages,
            tools: request.tools,
        }
    }

    pub(super) fn declares(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name.as_str() == name)
    }

    /// Names what is declared, and what of it is most like `name`.
    pub(super) fn describe_tools(&self, name: &str) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        if names.is_empty() {
            return "no tool is declared".to_owned();
        }
        let mut text = format!("declared are {}", quoted(&names));
        let likeness = |other: &&str| strsim::jaro_winkler(name, other);
        let nearest = names.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        if let Some(nearest) = nearest.filter(|nearest| likeness(nearest) >= LIKENESS_MIN) {
            let _ = write!(text, "; the nearest is `{nearest}`");
        }
        text
    }

    /// The words that the user said last.
    pub(super) fn prompt(&self) -> Option<&'a str> {
        self.messages.iter().rev().find_map(|message| match &message.role {
            Role::User { content } => Some(content.as_str()),
            _ => None,
        })
    }

    /// The newest answer of a tool, of any or of the named one.
    pub(super) fn last_answer(&self, tool: Option<&str>) -> Option<Answer<'a>> {
        let answers = self.messages.iter().rev().filter_map(answer);
        answers
            .into_iter()
            .find(|answer| tool.is_none_or(|tool| answer.tool == tool))
    }

    /// The answers since the model last spoke, in call order.
    pub(super) fn round(&self) -> Vec<Answer<'a>> {
        let spoke = |message: &Message| matches!(message.role, Role::Assistant { .. });
        let start = self.messages.iter().rposition(spoke).map_or(0, |at| at + 1);
        self.messages[start..].iter().filter_map(answer).collect()
    }
}

impl Answer<'_> {
    /// The answer as a value; text that is no JSON is a string.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(self.text).unwrap_or_else(|_| Value::String(self.text.to_owned()))
    }
}

/// Cuts a text to what fits an error message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Lists names for an error message.
pub(super) fn quoted(names: &[&str]) -> String {
    let listed: Vec<String> = names.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

fn answer(message: &Message) -> Option<Answer<'_>> {
    match &message.role {
        Role::Tool {
            name,
            content,
            is_error,
            ..
        } => Some(Answer {
            tool: name,
            text: content,
            is_error: *is_error,
        }),
        _ => None,
    }
}
