//! `tool-result` of `toolwit:plugin`: a record that a function returns to set separate texts for the model and the user,
//! artifacts and a follow-up call.

use serde_json::Value;

use super::types::{Field, WitType};
use toolwit_core::limits::ARTIFACT_WEIGHT_MAX;
use toolwit_core::text::{json_weight, parse_json, printable};
use toolwit_core::{Artifact, Audience, FollowUpCall, ToolResult, ToolStatus};

/// Returns whether a type is `tool-result`. The type is recognized by its fields.
pub(crate) fn is_tool_result(ty: &WitType) -> bool {
    let is_record = |ty: &WitType, names: &[&str], have_types: &dyn Fn(&[Field]) -> bool| {
        matches!(ty, WitType::Record(fields)
            if fields.iter().map(|field| field.label.wit.as_str()).eq(names.iter().copied()) && have_types(fields))
    };
    let are_strings = |fields: &[Field]| fields.iter().all(|field| field.ty == WitType::String);
    let names = ["for-llm", "for-user", "silent", "is-error", "artifacts", "background"];
    is_record(ty, &names, &|fields| {
        let [for_llm, for_user, silent, is_error, artifacts, background] = fields else {
            return false;
        };
        for_llm.ty == WitType::String
            && for_user.ty == WitType::Option(Box::new(WitType::String))
            && silent.ty == WitType::Bool
            && is_error.ty == WitType::Bool
            && matches!(&artifacts.ty, WitType::List(item) if is_record(item, &["kind", "value"], &are_strings))
            && matches!(&background.ty, WitType::Option(item) if is_record(item, &["tool", "arguments"], &are_strings))
    })
}

/// Reads a `tool-result` from the JSON of its record. The value of an artifact is parsed as JSON. The value remains text if it
/// is not valid JSON, or if this artifact and those before it would together need more than [`ARTIFACT_WEIGHT_MAX`] bytes of
/// memory.
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
    let mut weight: usize = 0;
    result.artifacts = artifacts
        .map(|artifact| {
            let value = text(&artifact["value"]).unwrap_or_default();
            weight = weight.saturating_add(json_weight(value.as_bytes()));
            let parsed = (weight <= ARTIFACT_WEIGHT_MAX)
                .then(|| parse_json(&value).ok())
                .flatten();
            let value = parsed.unwrap_or(Value::String(value));
            Artifact::new(text(&artifact["kind"]).unwrap_or_default(), value)
        })
        .collect();
    result
}
