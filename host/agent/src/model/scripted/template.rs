//! References from a script to what the model was shown: `{{search_customer.id}}`.

use serde_json::Value;

use super::shown::{Shown, excerpt, quoted};
use toolwit_core::ToolName;
use toolwit_core::text::json_type;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A piece of a text.
#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Text(&'t str),
    Reference(Reference<'t>),
}

/// A value that the text takes from what was shown.
#[derive(Debug, PartialEq)]
struct Reference<'t> {
    written: &'t str,
    source: Source<'t>,
    path: Vec<String>,
}

#[derive(Debug, PartialEq)]
enum Source<'t> {
    Result,
    Results,
    Prompt,
    Tool(&'t str),
}

/// Fills the references of a text in. Strings stand without quotes, other values as JSON.
pub(super) fn fill_text(text: &str, shown: &Shown<'_>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Reference(reference) => match reference.look_up(shown)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            },
        }
    }
    Ok(filled)
}

/// Fills the references in all strings of a value in; a string that is one reference becomes the value it refers to.
pub(super) fn fill_value(value: &Value, shown: &Shown<'_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match pieces(text)?.as_slice() {
            [Piece::Reference(reference)] => reference.look_up(shown)?,
            _ => Value::String(fill_text(text, shown)?),
        },
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| fill_value(item, shown))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(entries) => {
            let filled = entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill_value(value, shown)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Says what is wrong with the references of a text.
pub(super) fn text_flaw(text: &str) -> Option<String> {
    pieces(text).err()
}

/// Says what is wrong with the references in the strings of a value.
pub(super) fn value_flaw(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text_flaw(text),
        Value::Array(items) => items.iter().find_map(value_flaw),
        Value::Object(entries) => entries.values().find_map(value_flaw),
        _ => None,
    }
}

/// Splits a JSON pointer, or says what is wrong with it.
pub(super) fn pointer(text: &str) -> Result<Vec<String>, String> {
    match text.strip_prefix('/') {
        None if text.is_empty() => Ok(Vec::new()),
        None => Err(format!("the JSON pointer `{text}` must start with `/`")),
        Some(rest) => Ok(rest
            .split('/')
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect()),
    }
}

/// Follows a path into a value, or says where it ends.
pub(super) fn follow<'v>(value: &'v Value, path: &[String]) -> Result<&'v Value, String> {
    let mut at = value;
    for step in path {
        at = match at {
            Value::Object(entries) => entries.get(step).ok_or_else(|| {
                let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
                match keys.is_empty() {
                    true => format!("there is no `{step}` in an empty object"),
                    false => format!("there is no `{step}`; there are {}", quoted(&keys)),
                }
            })?,
            Value::Array(items) => step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index))
                .ok_or_else(|| format!("there is no item `{step}` in an array of {}", items.len()))?,
            other => {
                let (shown, what) = (excerpt(&other.to_string()), json_type(other));
                return Err(format!("there is no `{step}` in {what}: {shown}"));
            }
        };
    }
    Ok(at)
}

impl<'t> Reference<'t> {
    fn parse(written: &'t str) -> Result<Self, String> {
        let trimmed = written.trim();
        let (source, rest) = match trimmed.find(['.', '/']) {
            Some(at) => trimmed.split_at(at),
            None => (trimmed, ""),
        };
        let path: Vec<String> = match rest.strip_prefix('.') {
            Some(dotted) => dotted.split('.').map(str::to_owned).collect(),
            None => pointer(rest)?,
        };
        if rest.starts_with('.') && path.iter().any(String::is_empty) {
            return Err(format!("the reference `{{{{{written}}}}}` has an empty step"));
        }
        let source = match source {
            "result" => Source::Result,
            "prompt" => Source::Prompt,
            "results" => Source::Results,
            tool if ToolName::parse(tool).is_some() => Source::Tool(tool),
            _ => {
                return Err(format!(
                    "the reference `{{{{{written}}}}}` must start with `result`, `results`, `prompt` or the name of a tool"
                ));
            }
        };
        match source {
            Source::Prompt if !path.is_empty() => Err(format!("the reference `{{{{{written}}}}}` looks into a text")),
            Source::Results if path.first().is_none_or(|index| index.parse::<usize>().is_err()) => Err(format!(
                "the reference `{{{{{written}}}}}` must say which result: `results.0`"
            )),
            _ => Ok(Self { written, source, path }),
        }
    }

    fn look_up(&self, shown: &Shown<'_>) -> Result<Value, String> {
        let (value, path) = match self.source {
            Source::Prompt => (
                shown.prompt().map(|text| Value::String(text.to_owned())),
                self.path.as_slice(),
            ),
            Source::Result => (
                shown.last_answer(None).map(|answer| answer.value()),
                self.path.as_slice(),
            ),
            Source::Tool(tool) => (
                shown.last_answer(Some(tool)).map(|answer| answer.value()),
                self.path.as_slice(),
            ),
            Source::Results => {
                let index = self.path.first().and_then(|index| index.parse::<usize>().ok());
                let answer = index.and_then(|index| shown.round().get(index).copied());
                (
                    answer.map(|answer| answer.value()),
                    self.path.get(1..).unwrap_or_default(),
                )
            }
        };
        let value =
            value.ok_or_else(|| format!("`{{{{{}}}}}` refers to something that was not shown", self.written))?;
        match follow(&value, path) {
            Ok(value) => Ok(value.clone()),
            Err(why) => Err(format!("`{{{{{}}}}}` cannot be filled in: {why}", self.written)),
        }
    }
}

/// Takes a text apart; `\{{` is the two brackets themselves.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let (before, after) = (&rest[..at], &rest[at + OPEN.len()..]);
        if let Some(before) = before.strip_suffix('\\') {
            pieces.extend([Piece::Text(before), Piece::Text(OPEN)]);
            rest = after;
            continue;
        }
        let end = after.find(CLOSE).ok_or_else(|| {
            format!(
                "`{{{{` is not closed in {}; write `\\{{{{` for the brackets",
                excerpt(text)
            )
        })?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Reference(Reference::parse(&after[..end])?));
        rest = &after[end + CLOSE.len()..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
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

    fn with_shown<T>(check: impl FnOnce(&Shown<'_>) -> T) -> T {
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
        check(&Shown::new(ChatRequest::new(&messages, &[], &options, &cancel)))
    }

    #[test]
    fn references_reach_every_shown_value() {
        let text = |text: &str| with_shown(|shown| fill_text(text, shown)).unwrap();
        assert_eq!(text("{{find.id}} {{ find.n }} {{find/a.b/0}}"), "c-1 12.5 true");
        assert_eq!(
            text("{{result.0}} {{result}} {{results.0}} {{results/1/0}}"),
            "7 [7] plain 7"
        );
        assert_eq!(text(r"{{prompt}} \{{kept}}"), "the prompt {{kept}}");
    }

    #[test]
    fn a_lone_reference_keeps_its_type() {
        let template = json!({"n": "{{find.n}}", "in": ["{{find/a.b}}"], "text": "n={{find.n}}", "plain": 1});
        let filled = with_shown(|shown| fill_value(&template, shown)).unwrap();
        assert_eq!(filled, json!({"n": 12.5, "in": [[true]], "text": "n=12.5", "plain": 1}));
    }

    #[test]
    fn what_was_not_shown_is_an_error_that_tells_what_was() {
        let error = |text: &str| with_shown(|shown| fill_text(text, shown)).unwrap_err();
        assert!(
            error("{{find.name}}").contains("there are `id`, `a.b`, `n`"),
            "{}",
            error("{{find.name}}")
        );
        assert!(error("{{result.3}}").contains("array of 1"));
        assert!(error("{{results.2}}").contains("not shown"));
        assert!(error("{{other.id}}").contains("not shown"));
        assert!(error("{{results.0.x}}").contains("a string: `\"plain\"`"));
    }

    #[test]
    fn malformed_references_are_refused_before_the_run() {
        for bad in [
            "{{",
            "a {{result",
            "{{}}",
            "{{result..a}}",
            "{{results}}",
            "{{results.x}}",
            "{{prompt.a}}",
            "{{a b.c}}",
        ] {
            assert!(text_flaw(bad).is_some(), "{bad}");
            assert!(value_flaw(&json!({"deep": [bad]})).is_some(), "{bad}");
        }
        assert_eq!(text_flaw("no reference }}"), None);
    }

    proptest! {
        #[test]
        fn text_without_brackets_stays_as_it_is(text in "[^{]{0,40}") {
            prop_assert_eq!(with_shown(|shown| fill_text(&text, shown)), Ok(text.clone()));
        }

        #[test]
        fn no_text_panics(text in r"[{}\\./a-c ]{0,20}") {
            let _ = with_shown(|shown| fill_text(&text, shown));
        }
    }
}
