//! Between the records of `toolwit:plugin` and the house's own types.

use serde_json::Value;
use wasmtime::component::Val;

use toolwit_core::ErrorKind;
use toolwit_core::text::parse_json;
use toolwit_core::text::printable;
use toolwit_core::{Artifact, Audience, BlackboardEntry, FollowUpCall, ToolError, ToolResult, ToolStatus};

/// What the artifacts of one result may weigh as values; see [`weight`].
const ARTIFACT_WEIGHT_MAX: usize = 16 << 20;

/// The type checker lets nothing else through; this is for the compiler.
pub(super) fn mismatch() -> wasmtime::Error {
    wasmtime::Error::msg("a value is not of the type that the interface says")
}

pub(super) fn first(arguments: &[Val]) -> wasmtime::Result<&Val> {
    arguments.first().ok_or_else(mismatch)
}

pub(super) fn answer(results: &mut [Val], value: Val) -> wasmtime::Result<()> {
    *results.first_mut().ok_or_else(mismatch)? = value;
    Ok(())
}

pub(super) fn unit_or_text(outcome: Result<(), String>) -> Val {
    Val::Result(match outcome {
        Ok(()) => Ok(None),
        Err(why) => Err(Some(Box::new(Val::String(why)))),
    })
}

fn text(text: impl Into<String>) -> Val {
    Val::String(text.into())
}

fn record<const N: usize>(fields: [(&str, Val); N]) -> Val {
    Val::Record(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

fn optional_text(value: Option<&str>) -> Val {
    Val::Option(value.map(|value| Box::new(text(value))))
}

pub(super) fn read_optional_text(value: &Val) -> wasmtime::Result<Option<String>> {
    match value {
        Val::Option(None) => Ok(None),
        Val::Option(Some(value)) => match &**value {
            Val::String(value) => Ok(Some(value.clone())),
            _ => Err(mismatch()),
        },
        _ => Err(mismatch()),
    }
}

pub(super) fn artifact(artifact: &Artifact) -> Val {
    record([
        ("kind", text(&*artifact.kind)),
        ("value", text(artifact.value.to_string())),
    ])
}

/// Reads an artifact. The inner error is the guest's: its text is no JSON.
pub(super) fn read_artifact(value: &Val) -> wasmtime::Result<Result<Artifact, String>> {
    let Val::Record(fields) = value else {
        return Err(mismatch());
    };
    let [(_, Val::String(kind)), (_, Val::String(value))] = fields.as_slice() else {
        return Err(mismatch());
    };
    if weight(value) > ARTIFACT_WEIGHT_MAX {
        return Ok(Err("the value of the artifact has too many parts".to_owned()));
    }
    let parsed = parse_json(value).map_err(|error| format!("the value of the artifact is no JSON: {error}"));
    Ok(parsed.map(|value| Artifact::new(kind, value)))
}

/// What a text costs the host as a value, in bytes and roughly: a number of one digit takes a value as a whole text does.
pub(super) fn weight(json: &str) -> usize {
    /// What the host holds for each value beside its text.
    const VALUE_BYTES: usize = 32;
    let (mut values, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    json.len().saturating_add(VALUE_BYTES * values)
}

pub(super) fn entry(entry: &BlackboardEntry) -> Val {
    record([
        ("name", optional_text(entry.name())),
        ("artifact", artifact(entry.artifact())),
    ])
}

/// Writes what came of a nested call as `result<tool-result, tool-error>`.
pub(super) fn called(outcome: &Result<ToolResult, ToolError>) -> Val {
    Val::Result(match outcome {
        Ok(result) => Ok(Some(Box::new(record([
            ("for-llm", text(result.content())),
            ("for-user", optional_text(result.for_user.as_deref())),
            ("silent", Val::Bool(result.is_silent())),
            ("is-error", Val::Bool(result.is_error())),
            ("artifacts", Val::List(result.artifacts.iter().map(artifact).collect())),
            ("background", Val::Option(None)),
        ])))),
        Err(error) => {
            let report = error.report();
            let case = match report.kind {
                ErrorKind::InvalidArguments => "invalid-arguments",
                ErrorKind::UnknownTool | ErrorKind::AmbiguousTool | ErrorKind::ToolUnavailable => "unavailable",
                ErrorKind::Denied => "denied",
                kind if kind.is_limit() => "limit",
                _ => "failed",
            };
            Err(Some(Box::new(Val::Variant(
                case.to_owned(),
                Some(Box::new(text(report.to_string()))),
            ))))
        }
    })
}

/// Reads a `tool-result` from the JSON of its record. An artifact whose value is no JSON, or has too many parts, is its text.
pub(crate) fn read_tool_result(record: &Value) -> ToolResult {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut result = ToolResult::text(text(&record["for_llm"]).unwrap_or_default());
    result.for_user = text(&record["for_user"]).map(|text| printable(&text));
    if record["silent"].as_bool().unwrap_or_default() {
        result.audience = Audience::Model;
    }
    if record["is_error"].as_bool().unwrap_or_default() {
        result.status = ToolStatus::Error;
    }
    result.follow_up = text(&record["background"]["tool"]).map(|tool| FollowUpCall {
        tool,
        arguments: text(&record["background"]["arguments"]).unwrap_or_default(),
    });
    let artifacts = record["artifacts"].as_array().into_iter().flatten();
    let mut weighed: usize = 0;
    result.artifacts = artifacts
        .map(|artifact| {
            let value = text(&artifact["value"]).unwrap_or_default();
            weighed = weighed.saturating_add(weight(&value));
            let parsed = (weighed <= ARTIFACT_WEIGHT_MAX)
                .then(|| parse_json(&value).ok())
                .flatten();
            let value = parsed.unwrap_or(Value::String(value));
            Artifact::new(text(&artifact["kind"]).unwrap_or_default(), value)
        })
        .collect();
    result
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_of_too_many_parts_is_refused_before_it_is_read_and_a_long_text_is_not() {
        let artifact = |value: String| record([("kind", text("k")), ("value", text(value))]);
        let wide = format!("[{}1]", "1,".repeat(1 << 20));
        assert!(read_artifact(&artifact(wide)).unwrap().is_err());
        let long = format!("\"{}\"", "1,[{\\\"".repeat(1 << 20));
        assert!(read_artifact(&artifact(long)).unwrap().is_ok());
    }
}
