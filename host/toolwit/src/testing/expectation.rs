//! Expected outcomes of calls.

use serde_json::Value;

use toolwit_core::{ToolError, ToolResult};

/// Maximum length of a value in the description of a mismatch, in characters. Longer values are truncated.
const VALUE_CHARS_MAX: usize = 400;

/// The expected outcome of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expectation {
    /// Any result that is not an error.
    Success,
    /// A result with this value. Numbers are compared by value: 4 equals 4.0.
    Result(Value),
    /// A result whose text contains this text.
    Contains(String),
    /// An error that contains this text: an error result of the tool whose content contains the text, or an error of the
    /// host whose kind or message does.
    Error(String),
}

impl Expectation {
    /// Compares the outcome of a call with the expectation. Returns a description of the difference, or `None` if the
    /// outcome meets the expectation.
    pub(super) fn mismatch(&self, outcome: &Result<ToolResult, ToolError>) -> Option<String> {
        let (error, result) = match outcome {
            Ok(result) if result.is_error() => (Some(result.content()), None),
            Ok(result) => (None, Some(result)),
            Err(error) => (Some(error_text(error)), None),
        };
        match (self, error, result) {
            (Self::Error(expected), Some(error), _) if error.contains(expected) => None,
            (Self::Error(expected), Some(error), _) => Some(describe_missing_text("the error", &error, expected)),
            (Self::Error(expected), None, Some(result)) => Some(format!(
                "it returned {}, not an error with `{expected}`",
                truncated(&result_value(result).to_string())
            )),
            (_, Some(error), _) => Some(format!("it failed: {}", truncated(&error))),
            (Self::Result(expected), _, Some(result)) => {
                let value = result_value(result);
                (!is_same(expected, &value)).then(|| {
                    format!(
                        "it returned {}, not {}",
                        truncated(&value.to_string()),
                        truncated(&expected.to_string())
                    )
                })
            }
            (Self::Contains(expected), _, Some(result)) => {
                let text = result.content();
                (!text.contains(expected)).then(|| describe_missing_text("the result", &text, expected))
            }
            _ => None,
        }
    }
}

fn error_text(error: &ToolError) -> String {
    let error = toolwit_core::Error::from(error.clone());
    format!("{}: {error}", error.kind)
}

fn describe_missing_text(subject: &str, actual: &str, expected: &str) -> String {
    format!(
        "{subject} `{}` does not contain `{}`",
        truncated(actual),
        truncated(expected)
    )
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn result_value(result: &ToolResult) -> Value {
    let text = || Value::String(result.for_llm.clone());
    result.value.clone().unwrap_or_else(text)
}

/// Compares two JSON values. Unlike with `==`, an integer equals a float of the same value.
fn is_same(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(is_same(&json!({"a": [4, 0.5]}), &json!({"a": [4.0, 0.5]})));
        assert!(!is_same(&json!([4]), &json!([4.5])));
        assert!(!is_same(&json!([4]), &json!([4, 4])));
        assert!(!is_same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!is_same(&json!("4"), &json!(4)));
        // These integers differ, although both round to the same float.
        assert!(!is_same(
            &json!(9_007_199_254_740_993_u64),
            &json!(9_007_199_254_740_992_u64)
        ));
    }
}
