//! References from a script to values of the request, such as `{{search_customer.id}}`.

use serde_json::Value;

use super::json_pointer;
use super::request_view::{RequestView, excerpt};
use toolwit_core::ToolName;

/// The beginning of a reference.
const OPEN: &str = "{{";

/// The end of a reference.
const CLOSE: &str = "}}";

/// A piece of a template: literal text or a reference.
#[derive(Debug, PartialEq)]
enum TemplatePiece<'t> {
    Text(&'t str),
    Reference(TemplateReference<'t>),
}

/// A reference to a value of the request.
#[derive(Debug, PartialEq)]
struct TemplateReference<'t> {
    /// The text of the reference without its braces, for errors.
    source_text: &'t str,
    source: ReferenceSource<'t>,
    /// The keys and indexes that lead to the value. For [`ReferenceSource::Results`], the first step is the index of the
    /// result.
    path: Vec<String>,
}

/// The part of the request to which a reference refers.
#[derive(Debug, PartialEq)]
enum ReferenceSource<'t> {
    /// The latest result.
    Result,
    /// The results since the model's previous response.
    Results,
    /// The user's latest message.
    Prompt,
    /// The latest result of this tool.
    Tool(&'t str),
}

/// Replaces the references in a text by their values. Strings are inserted without quotes, other values as JSON.
pub(super) fn fill_text(text: &str, request: &RequestView<'_>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in split_template(text)? {
        match piece {
            TemplatePiece::Text(text) => filled.push_str(text),
            TemplatePiece::Reference(reference) => match reference.look_up(request)? {
                Value::String(text) => filled.push_str(&text),
                value => filled.push_str(&value.to_string()),
            },
        }
    }
    Ok(filled)
}

/// Replaces the references in all strings of a value. A string that consists of one reference becomes the referenced
/// value with its type.
pub(super) fn fill_value(value: &Value, request: &RequestView<'_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match split_template(text)?.as_slice() {
            [TemplatePiece::Reference(reference)] => reference.look_up(request)?,
            _ => Value::String(fill_text(text, request)?),
        },
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| fill_value(item, request))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(entries) => {
            let filled = entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill_value(value, request)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        scalar => scalar.clone(),
    })
}

/// Returns the reason why a reference in a text is malformed, or `None` if all references are valid.
pub(super) fn text_flaw(text: &str) -> Option<String> {
    split_template(text).err()
}

/// Returns the reason why a reference in a string of a value is malformed, or `None` if all references are valid.
pub(super) fn value_flaw(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text_flaw(text),
        Value::Array(items) => items.iter().find_map(value_flaw),
        Value::Object(entries) => entries.values().find_map(value_flaw),
        _ => None,
    }
}

impl<'t> TemplateReference<'t> {
    fn parse(source_text: &'t str) -> Result<Self, String> {
        let trimmed = source_text.trim();
        let (source_name, steps) = match trimmed.find(['.', '/']) {
            Some(position) => trimmed.split_at(position),
            None => (trimmed, ""),
        };
        let path: Vec<String> = match steps.strip_prefix('.') {
            Some(dotted) => dotted.split('.').map(str::to_owned).collect(),
            None => json_pointer::parse(steps)?,
        };
        if steps.starts_with('.') && path.iter().any(String::is_empty) {
            return Err(format!(
                "the reference `{{{{{source_text}}}}}` must not have an empty step"
            ));
        }
        let source = match source_name {
            "result" => ReferenceSource::Result,
            "prompt" => ReferenceSource::Prompt,
            "results" => ReferenceSource::Results,
            tool if ToolName::parse(tool).is_some() => ReferenceSource::Tool(tool),
            _ => {
                return Err(format!(
                    "the reference `{{{{{source_text}}}}}` must start with `result`, `results`, `prompt` or the name of a tool"
                ));
            }
        };
        match source {
            ReferenceSource::Prompt if !path.is_empty() => Err(format!(
                "the reference `{{{{{source_text}}}}}` must not have steps, because the prompt is a text"
            )),
            ReferenceSource::Results if path.first().is_none_or(|index| index.parse::<usize>().is_err()) => Err(
                format!("the reference `{{{{{source_text}}}}}` must give the index of the result: `results.0`"),
            ),
            _ => Ok(Self {
                source_text,
                source,
                path,
            }),
        }
    }

    /// Returns the value to which the reference refers. The error is the reason why the request does not have this
    /// value.
    fn look_up(&self, request: &RequestView<'_>) -> Result<Value, String> {
        let (value, path) = match self.source {
            ReferenceSource::Prompt => (
                request.prompt().map(|text| Value::String(text.to_owned())),
                self.path.as_slice(),
            ),
            ReferenceSource::Result => (
                request.last_result(None).map(|result| result.value()),
                self.path.as_slice(),
            ),
            ReferenceSource::Tool(tool) => (
                request.last_result(Some(tool)).map(|result| result.value()),
                self.path.as_slice(),
            ),
            ReferenceSource::Results => {
                let index = self.path.first().and_then(|index| index.parse::<usize>().ok());
                let result = index.and_then(|index| request.latest_results().get(index).copied());
                (
                    result.map(|result| result.value()),
                    self.path.get(1..).unwrap_or_default(),
                )
            }
        };
        let value = value.ok_or_else(|| {
            format!(
                "`{{{{{}}}}}` refers to a value that the request does not have",
                self.source_text
            )
        })?;
        match json_pointer::follow(&value, path) {
            Ok(value) => Ok(value.clone()),
            Err(why) => Err(format!("`{{{{{}}}}}` cannot be resolved: {why}", self.source_text)),
        }
    }
}

/// Splits a text into literals and references. `\{{` is a literal `{{`.
fn split_template(text: &str) -> Result<Vec<TemplatePiece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut remaining = text;
    while let Some(position) = remaining.find(OPEN) {
        let (before, after) = (&remaining[..position], &remaining[position + OPEN.len()..]);
        if let Some(before) = before.strip_suffix('\\') {
            pieces.extend([TemplatePiece::Text(before), TemplatePiece::Text(OPEN)]);
            remaining = after;
            continue;
        }
        let end = after.find(CLOSE).ok_or_else(|| {
            format!(
                "`{{{{` is not closed in {}; write `\\{{{{` for literal braces",
                excerpt(text)
            )
        })?;
        if !before.is_empty() {
            pieces.push(TemplatePiece::Text(before));
        }
        pieces.push(TemplatePiece::Reference(TemplateReference::parse(&after[..end])?));
        remaining = &after[end + CLOSE.len()..];
    }
    if !remaining.is_empty() {
        pieces.push(TemplatePiece::Text(remaining));
    }
    Ok(pieces)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::model::{ChatOptions, ChatRequest};
    use toolwit_core::{Message, ToolCall};

    /// Calls `check` with a request whose history has results of the tools `find` and `sum`.
    fn with_request<T>(check: impl FnOnce(&RequestView<'_>) -> T) -> T {
        let call = |id: &str, name: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: "{}".into(),
        };
        let (find, sum) = (call("1", "find"), call("2", "sum"));
        let messages = [
            Message::user("the prompt"),
            Message::assistant("", vec![find.clone()]),
            Message::tool(&find, r#"{"id": "c-1", "a.b": [true], "n": 12.5}"#, false),
            Message::assistant("", vec![sum.clone(), sum.clone()]),
            Message::tool(&sum, "plain", false),
            Message::tool(&sum, "[7]", false),
        ];
        let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
        check(&RequestView::new(ChatRequest::new(&messages, &[], &options, &cancel)))
    }

    #[test]
    fn references_resolve_to_values_of_the_request() {
        let filled = |text: &str| with_request(|request| fill_text(text, request)).unwrap();
        assert_eq!(filled("{{find.id}} {{ find.n }} {{find/a.b/0}}"), "c-1 12.5 true");
        assert_eq!(
            filled("{{result.0}} {{result}} {{results.0}} {{results/1/0}}"),
            "7 [7] plain 7"
        );
        assert_eq!(filled(r"{{prompt}} \{{literal}}"), "the prompt {{literal}}");
    }

    #[test]
    fn a_string_of_one_reference_becomes_the_value_with_its_type() {
        let template = json!({"n": "{{find.n}}", "in": ["{{find/a.b}}"], "text": "n={{find.n}}", "plain": 1});
        let filled = with_request(|request| fill_value(&template, request)).unwrap();
        assert_eq!(filled, json!({"n": 12.5, "in": [[true]], "text": "n=12.5", "plain": 1}));
    }

    #[test]
    fn a_reference_to_a_missing_value_is_an_error_that_describes_the_existing_values() {
        let error = |text: &str| with_request(|request| fill_text(text, request)).unwrap_err();
        assert!(
            error("{{find.name}}").contains("there are `id`, `a.b`, `n`"),
            "{}",
            error("{{find.name}}")
        );
        assert!(error("{{result.3}}").contains("array of 1"));
        assert!(error("{{results.2}}").contains("does not have"));
        assert!(error("{{other.id}}").contains("does not have"));
        assert!(error("{{results.0.x}}").contains("a string: `\"plain\"`"));
    }

    #[test]
    fn malformed_references_are_refused_before_the_run() {
        for malformed in [
            "{{",
            "a {{result",
            "{{}}",
            "{{result..a}}",
            "{{results}}",
            "{{results.x}}",
            "{{prompt.a}}",
            "{{a b.c}}",
        ] {
            assert!(text_flaw(malformed).is_some(), "{malformed}");
            assert!(value_flaw(&json!({"deep": [malformed]})).is_some(), "{malformed}");
        }
        assert_eq!(text_flaw("no reference }}"), None);
    }

    proptest! {
        #[test]
        fn text_without_braces_is_unchanged(text in "[^{]{0,40}") {
            prop_assert_eq!(with_request(|request| fill_text(&text, request)), Ok(text.clone()));
        }

        #[test]
        fn filling_a_text_never_panics(text in r"[{}\\./a-c ]{0,20}") {
            let _ = with_request(|request| fill_text(&text, request));
        }
    }
}
