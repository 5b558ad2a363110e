//! JSON pointers, with errors that describe the value at which a pointer ends.

use serde_json::Value;

use super::request_view::{excerpt, quoted};
use toolwit_core::text::json_type;

/// Splits a JSON pointer into its steps, or returns the reason why it is malformed.
pub(super) fn parse(text: &str) -> Result<Vec<String>, String> {
    match text.strip_prefix('/') {
        None if text.is_empty() => Ok(Vec::new()),
        None => Err(format!("the JSON pointer `{text}` must start with `/`")),
        Some(rest) => Ok(rest
            .split('/')
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect()),
    }
}

/// Follows steps into a value, or returns the reason why a step does not exist.
pub(super) fn follow<'v>(value: &'v Value, path: &[String]) -> Result<&'v Value, String> {
    let mut current = value;
    for step in path {
        current = match current {
            Value::Object(entries) => entries.get(step).ok_or_else(|| {
                let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
                if keys.is_empty() {
                    format!("there is no `{step}` in an empty object")
                } else {
                    format!("there is no `{step}`; there are {}", quoted(&keys))
                }
            })?,
            Value::Array(items) => step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index))
                .ok_or_else(|| format!("there is no item `{step}` in an array of {}", items.len()))?,
            other => {
                let (text, kind) = (excerpt(&other.to_string()), json_type(other));
                return Err(format!("there is no `{step}` in {kind}: {text}"));
            }
        };
    }
    Ok(current)
}
