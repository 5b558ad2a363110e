//! JSON pointers, with errors that describe the value in which a step does not exist.

use serde_json::Value;

use super::request_view::{excerpt, quoted_list};
use toolwit_core::text::json_type;

/// Splits a JSON pointer into its steps, or returns the reason why it is malformed.
pub(super) fn parse(text: &str) -> Result<Vec<String>, String> {
    match text.strip_prefix('/') {
        None if text.is_empty() => Ok(Vec::new()),
        None => Err(format!("the JSON pointer `{text}` must start with `/`")),
        Some(steps) => Ok(steps
            .split('/')
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect()),
    }
}

/// Returns the value to which the steps of a pointer lead, or the reason why a step does not exist.
pub(super) fn follow<'v>(value: &'v Value, steps: &[String]) -> Result<&'v Value, String> {
    let mut current = value;
    for step in steps {
        current = match current {
            Value::Object(entries) => entries.get(step).ok_or_else(|| {
                let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
                if keys.is_empty() {
                    format!("there is no `{step}` in an empty object")
                } else {
                    format!("there is no `{step}`; there are {}", quoted_list(&keys))
                }
            })?,
            Value::Array(items) => step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index))
                .ok_or_else(|| format!("there is no item `{step}` in an array of {}", items.len()))?,
            scalar => {
                let (text, type_name) = (excerpt(&scalar.to_string()), json_type(scalar));
                return Err(format!("there is no `{step}` in {type_name}: {text}"));
            }
        };
    }
    Ok(current)
}
