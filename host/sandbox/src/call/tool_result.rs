//! Conversion of a function's result to the result of a tool.

use serde_json::Value;
use wasmtime::component::Val;

use crate::values::encode::{EncodeError, encode, encode_payload};
use crate::values::tool_result::read_tool_result;
use crate::values::types::{Function, WitType};
use toolwit_core::limits::{ByteCount, CallLimits};
use toolwit_core::text::json_len;
use toolwit_core::{Artifact, ToolResult};
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// Converts the result of a function. `entities` yields the JSON of each handle in the value, in order.
///
/// # Errors
/// [`ErrorKind::ResultBytes`] for a result that exceeds the limits, and [`ErrorKind::Internal`] for a value that does not have the
/// declared type.
pub(crate) fn tool_result(
    function: &Function,
    value: Option<Val>,
    entities: &mut dyn Iterator<Item = Value>,
    limits: &CallLimits,
) -> Result<ToolResult, Error> {
    let converted = match (&function.result, value) {
        (Some(WitType::Result { ok, .. }), Some(Val::Result(Ok(payload)))) => {
            encode_payload(ok.as_deref(), payload.map(|payload| *payload), entities)
                .map(|value| success(function, value))
        }
        (Some(WitType::Result { err, .. }), Some(Val::Result(Err(payload)))) => {
            let payload = payload.map(|payload| *payload);
            let docs = err
                .as_deref()
                .zip(payload.as_ref())
                .and_then(|(ty, value)| case_docs(ty, value));
            encode_payload(err.as_deref(), payload, entities).map(|value| failure(value, docs))
        }
        (Some(ty), Some(value)) => encode(ty, value, entities).map(|value| success(function, value)),
        (None, None) => Ok(ToolResult::value(Value::Null)),
        _ => Err(EncodeError),
    };
    let result = converted.map_err(|error| {
        Error::new(ErrorKind::Internal, Phase::Execute, "the result could not be read").with_source(error)
    })?;
    require_within(&result, limits)?;
    Ok(result)
}

/// Converts the JSON of the value that a function returned: a `tool-result` or any other value.
fn success(function: &Function, value: Value) -> ToolResult {
    if function.returns_tool_result {
        read_tool_result(&value)
    } else {
        ToolResult::value(value)
    }
}

/// Returns the docs of the variant or enum case of an error value.
fn case_docs<'a>(ty: &'a WitType, value: &Val) -> Option<&'a str> {
    let label = match (ty, value) {
        (WitType::Variant(cases), Val::Variant(name, _)) => {
            let mut labels = cases.iter().map(|case| &case.label);
            labels.find(|label| label.wit == *name)
        }
        (WitType::Enum(labels), Val::Enum(name)) => labels.iter().find(|label| label.wit == *name),
        _ => None,
    };
    label?.docs.as_deref()
}

/// The text for the model if the error of a function has no content.
const NO_REASON: &str = "the tool failed without a reason";

/// Converts the JSON of the error that a function returned. The model receives the error and the docs of its case.
fn failure(error: Value, docs: Option<&str>) -> ToolResult {
    let mut text = match &error {
        Value::Null => NO_REASON.to_owned(),
        Value::String(text) if text.trim().is_empty() => NO_REASON.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(docs) = docs {
        text = format!("{text}: {docs}");
    }
    let mut result = ToolResult::error(text);
    result.value = Some(error);
    result
}

/// Refuses a result whose text or artifacts exceed the limits of a call.
///
/// # Errors
/// [`ErrorKind::ResultBytes`].
pub(crate) fn require_within(result: &ToolResult, limits: &CallLimits) -> Result<(), Error> {
    let for_user = result.for_user.as_deref().unwrap_or_default();
    let bytes = (result.for_llm.len() + for_user.len()) as u64;
    if bytes > limits.result_bytes_max {
        return Err(result_too_large(bytes, limits));
    }
    require_artifacts_within(result, limits)
}

/// Refuses a result whose artifacts exceed the limit of a call.
///
/// # Errors
/// [`ErrorKind::ResultBytes`].
pub(crate) fn require_artifacts_within(result: &ToolResult, limits: &CallLimits) -> Result<(), Error> {
    let bytes_of = |artifact: &Artifact| (artifact.kind.len() + json_len(&artifact.value)) as u64;
    let bytes: u64 = result.artifacts.iter().map(bytes_of).sum();
    let max = limits.artifact_bytes_max;
    if bytes <= max {
        return Ok(());
    }
    let message = format!(
        "the artifacts have {} and may have {}",
        ByteCount(bytes),
        ByteCount(max)
    );
    Err(Error::new(ErrorKind::ResultBytes, Phase::Execute, message)
        .with_suggestion("return fewer or smaller artifacts in one call")
        .with_limit(ExceededLimit::new("artifact_bytes_max", max, bytes)))
}

/// Creates the error for a result over `result_bytes_max`.
pub(crate) fn result_too_large(bytes: u64, limits: &CallLimits) -> Error {
    let message = format!(
        "the result has {} and may have {}",
        ByteCount(bytes),
        ByteCount(limits.result_bytes_max)
    );
    Error::new(ErrorKind::ResultBytes, Phase::Execute, message)
        .with_suggestion("request less in one call")
        .with_limit(ExceededLimit::new("result_bytes_max", limits.result_bytes_max, bytes))
}
