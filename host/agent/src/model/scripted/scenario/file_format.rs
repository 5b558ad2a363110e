//! The file format of scenarios.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use toml::Spanned;

use super::super::scripted_turn::{CallArguments, ScriptedCall, TurnAction};
use super::super::{Expectation, ScriptedTurn, TextMatch};
use crate::model::{FinishReason, ModelError, TokenUsage};

/// A scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) name: Option<String>,
    pub(super) prompt: Option<String>,
    #[serde(default)]
    pub(super) turn: Vec<Spanned<TurnEntry>>,
}

/// A turn of a scenario file. [`ScriptedModel::parse`](crate::model::ScriptedModel::parse) describes the keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnEntry {
    expect: Option<ExpectEntry>,
    say: Option<String>,
    answer: Option<String>,
    call: Option<Vec<CallEntry>>,
    fail: Option<FailEntry>,
    silent: Option<bool>,
    finish: Option<FinishReason>,
    usage: Option<UsageEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    tool: String,
    id: Option<String>,
    arguments: Option<Json>,
    arguments_text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum FailEntry {
    Refused { status: u16, message: String },
    Unavailable { status: Option<u16>, message: String },
    Malformed { message: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageEntry {
    input_tokens: u64,
    #[serde(default)]
    cached_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectEntry {
    tools: Option<Texts>,
    no_tools: Option<Texts>,
    prompt: Option<MatchEntry>,
    last_result: Option<MatchEntry>,
    results: Option<Vec<MatchEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatchEntry {
    tool: Option<String>,
    is_error: Option<bool>,
    equals: Option<String>,
    contains: Option<Texts>,
    lacks: Option<Texts>,
    json: Option<Json>,
}

impl TryFrom<TurnEntry> for ScriptedTurn {
    type Error = String;

    fn try_from(entry: TurnEntry) -> Result<Self, String> {
        let action_keys = [
            ("answer", entry.answer.is_some()),
            ("call", entry.call.is_some()),
            ("fail", entry.fail.is_some()),
            ("silent", entry.silent.is_some()),
        ];
        let actions: Vec<&str> = action_keys
            .iter()
            .filter(|(_, is_present)| *is_present)
            .map(|(name, _)| *name)
            .collect();
        if actions.len() > 1 {
            return Err(format!(
                "a turn must not have both `{}` and `{}`; use `say` for text in addition to a call",
                actions[0], actions[1]
            ));
        }
        let is_response = entry.answer.is_some() || entry.call.is_some();
        if entry.say.is_some() && entry.call.is_none() {
            return Err("`say` requires `call`; use `answer` for text without a call".to_owned());
        }
        if !is_response && (entry.finish.is_some() || entry.usage.is_some()) {
            return Err("`finish` and `usage` require an `answer` or a `call`".to_owned());
        }
        let mut turn = Self::new(match entry {
            TurnEntry { answer: Some(text), .. } => TurnAction::Respond {
                text,
                calls: Vec::new(),
            },
            TurnEntry {
                call: Some(calls), say, ..
            } => call_action(say, calls)?,
            TurnEntry { fail: Some(fail), .. } => TurnAction::Fail(fail.into()),
            TurnEntry { silent: Some(true), .. } => TurnAction::Silence,
            TurnEntry {
                silent: Some(false), ..
            } => return Err("`silent` can only be `true`".to_owned()),
            _ => return Err("the turn has no action: it needs `answer`, `call`, `fail` or `silent`".to_owned()),
        });
        turn.expectation = entry.expect.map(Expectation::try_from).transpose()?;
        turn.finish = entry.finish;
        turn.usage = entry
            .usage
            .map(|usage| TokenUsage::new(usage.input_tokens, usage.cached_tokens, usage.output_tokens));
        Ok(turn)
    }
}

/// Returns the action of a turn with calls.
fn call_action(say: Option<String>, calls: Vec<CallEntry>) -> Result<TurnAction, String> {
    if calls.is_empty() {
        return Err("`call` is empty".to_owned());
    }
    Ok(TurnAction::Respond {
        text: say.unwrap_or_default(),
        calls: calls
            .into_iter()
            .map(ScriptedCall::try_from)
            .collect::<Result<_, _>>()?,
    })
}

impl TryFrom<CallEntry> for ScriptedCall {
    type Error = String;

    fn try_from(entry: CallEntry) -> Result<Self, String> {
        let arguments = match (entry.arguments, entry.arguments_text) {
            (Some(_), Some(_)) => return Err("a call must have `arguments` or `arguments_text`, not both".to_owned()),
            (Some(Json(value)), None) if !value.is_object() => {
                return Err("`arguments` must be a table; use `arguments_text` for other JSON".to_owned());
            }
            (Some(Json(value)), None) => CallArguments::Json(value),
            (None, Some(text)) => CallArguments::Verbatim(text),
            (None, None) => CallArguments::Json(Value::Object(Map::new())),
        };
        Ok(Self {
            tool: entry.tool,
            arguments,
            id: entry.id,
        })
    }
}

impl From<FailEntry> for ModelError {
    fn from(entry: FailEntry) -> Self {
        match entry {
            FailEntry::Refused { status, message } => Self::Refused { status, message },
            FailEntry::Malformed { message } => Self::Malformed { message },
            FailEntry::Unavailable { status, message } => Self::Unavailable {
                attempts: 1,
                message,
                status,
            },
        }
    }
}

impl TryFrom<ExpectEntry> for Expectation {
    type Error = String;

    fn try_from(entry: ExpectEntry) -> Result<Self, String> {
        let results = entry
            .results
            .map(|results| results.into_iter().map(TextMatch::try_from).collect());
        Ok(Self {
            tools: entry.tools.map(|Texts(names)| names),
            no_tools: entry.no_tools.map(|Texts(names)| names),
            prompt: entry.prompt.map(TextMatch::try_from).transpose()?,
            last_result: entry.last_result.map(TextMatch::try_from).transpose()?,
            results: results.transpose()?,
        })
    }
}

impl TryFrom<MatchEntry> for TextMatch {
    type Error = String;

    fn try_from(entry: MatchEntry) -> Result<Self, String> {
        let json = match entry.json {
            None => Vec::new(),
            Some(Json(Value::Object(values))) if !values.is_empty() => values.into_iter().collect(),
            Some(_) => {
                return Err(
                    "`json` must be a table from JSON pointers to values: `{ \"/id\" = \"c-123\" }`".to_owned(),
                );
            }
        };
        Ok(Self {
            tool: entry.tool,
            is_error: entry.is_error,
            equals: entry.equals,
            contains: entry.contains.map(|Texts(texts)| texts).unwrap_or_default(),
            lacks: entry.lacks.map(|Texts(texts)| texts).unwrap_or_default(),
            json,
        })
    }
}

/// A text, or a non-empty list of texts.
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a non-empty list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = seq.next_element()? {
                    texts.push(text);
                }
                if texts.is_empty() {
                    return Err(de::Error::invalid_length(0, &self));
                }
                Ok(Texts(texts))
            }
        }

        deserializer.deserialize_any(TextsVisitor)
    }
}

/// A TOML value that JSON can represent.
struct Json(Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        to_json(value).map(Json).map_err(de::Error::custom)
    }
}

/// Converts a TOML value to JSON. The error is the reason why JSON cannot represent it.
fn to_json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Float(number) => {
            Value::Number(Number::from_f64(number).ok_or_else(|| format!("JSON has no number `{number}`"))?)
        }
        toml::Value::Datetime(date) => return Err(format!("JSON has no dates: write `\"{date}\"` in quotes")),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(to_json).collect::<Result<_, _>>()?),
        toml::Value::Table(entries) => {
            let entries = entries.into_iter().map(|(key, value)| Ok((key, to_json(value)?)));
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
    })
}
