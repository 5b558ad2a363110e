//! Conditions on the prompt or on a tool result.

use serde_json::Value;

use super::json_pointer;
use super::request_view::{ToolResultView, excerpt};
use toolwit_core::ToolName;

/// Conditions on the prompt or on a tool result. All of them must hold. The prompt cannot have the conditions
/// [`tool`](Self::tool), [`error`](Self::error) and [`success`](Self::success).
///
/// JSON numbers are compared by value: `12` equals `12.0`, but not `"12"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextMatch {
    pub(super) tool: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) equals: Option<String>,
    pub(super) contains: Vec<String>,
    pub(super) lacks: Vec<String>,
    pub(super) json: Vec<(String, Value)>,
}

impl TextMatch {
    /// Creates a match without conditions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires the result to come from the tool with this name.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Requires the result to be an error.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.is_error = Some(true);
        self
    }

    /// Requires the result to be a success.
    #[must_use]
    pub fn success(mut self) -> Self {
        self.is_error = Some(false);
        self
    }

    /// Requires the text to be equal to this text.
    #[must_use]
    pub fn equals(mut self, text: impl Into<String>) -> Self {
        self.equals = Some(text.into());
        self
    }

    /// Requires the text to contain this text.
    #[must_use]
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.contains.push(text.into());
        self
    }

    /// Requires the text not to contain this text.
    #[must_use]
    pub fn lacks(mut self, text: impl Into<String>) -> Self {
        self.lacks.push(text.into());
        self
    }

    /// Requires the text to be JSON with this value at the JSON pointer. The empty pointer refers to the entire
    /// document.
    #[must_use]
    pub fn json(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.json.push((pointer.into(), value.into()));
        self
    }

    /// Returns the reason why the match is invalid, or `None` if it is valid. A match is invalid if it can never fail or
    /// can never hold, or if a JSON pointer or the tool name is malformed.
    pub(super) fn flaw(&self) -> Option<String> {
        if *self == Self::default() {
            return Some("the match is empty, so it can never fail".to_owned());
        }
        if self.contains.iter().any(String::is_empty) {
            return Some("every text contains the empty text, so the match can never fail".to_owned());
        }
        if self.lacks.iter().any(String::is_empty) {
            return Some("no text lacks the empty text, so the match can never hold".to_owned());
        }
        let pointer_flaw = self
            .json
            .iter()
            .find_map(|(pointer, _)| json_pointer::parse(pointer).err());
        pointer_flaw.or_else(|| self.tool.as_deref().and_then(name_flaw))
    }

    /// Returns the reason why the match is invalid for the prompt, or `None` if it is valid. It is invalid if it has a
    /// condition that only a tool result can meet, or for a reason of [`flaw`](Self::flaw).
    pub(super) fn prompt_flaw(&self) -> Option<String> {
        match (&self.tool, self.is_error) {
            (None, None) => self.flaw(),
            _ => Some("`tool` and `is_error` are for results, not for the prompt".to_owned()),
        }
    }

    /// Adds a message to `failures` for each condition that a tool result does not meet. `subject` names the result in
    /// the messages.
    pub(super) fn check(&self, subject: &str, result: ToolResultView<'_>, failures: &mut Vec<String>) {
        if let Some(tool) = self.tool.as_deref().filter(|tool| *tool != result.tool) {
            failures.push(format!(
                "expected {subject} to come from `{tool}`, but it comes from `{}`",
                result.tool
            ));
        }
        match (self.is_error, result.is_error) {
            (Some(true), false) => failures.push(format!(
                "expected {subject} to be an error, but it is {}",
                excerpt(result.text)
            )),
            (Some(false), true) => failures.push(format!(
                "expected {subject} to be a success, but it is {}",
                excerpt(result.text)
            )),
            _ => {}
        }
        self.check_text(subject, result.text, failures);
    }

    /// Adds a message to `failures` for each condition that a text does not meet. `subject` names the text in the
    /// messages.
    pub(super) fn check_text(&self, subject: &str, text: &str, failures: &mut Vec<String>) {
        let actual = excerpt(text);
        if let Some(equals) = self.equals.as_deref().filter(|equals| *equals != text) {
            failures.push(format!(
                "expected {subject} to be {}, but it is {actual}",
                excerpt(equals)
            ));
        }
        for part in self.contains.iter().filter(|part| !text.contains(part.as_str())) {
            failures.push(format!(
                "expected {subject} to contain {}, but it is {actual}",
                excerpt(part)
            ));
        }
        for part in self.lacks.iter().filter(|part| text.contains(part.as_str())) {
            failures.push(format!(
                "expected {subject} to lack {}, but it is {actual}",
                excerpt(part)
            ));
        }
        if self.json.is_empty() {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            failures.push(format!("expected {subject} to be JSON, but it is {actual}"));
            return;
        };
        failures.extend(self.json.iter().filter_map(|(pointer, expected)| {
            let difference = json_difference(&value, pointer, expected)?;
            Some(format!(
                "expected {subject} to have {expected} at `{pointer}`, but {difference}"
            ))
        }));
    }
}

/// Returns a description of how the value at a JSON pointer differs from the expected value, or `None` if they are equal.
fn json_difference(value: &Value, pointer: &str, expected: &Value) -> Option<String> {
    let actual = json_pointer::parse(pointer).and_then(|path| json_pointer::follow(value, &path).cloned());
    match actual {
        Ok(actual) if is_equal(&actual, expected) => None,
        Ok(actual) => Some(format!("it is {}", excerpt(&actual.to_string()))),
        Err(reason) => Some(reason),
    }
}

/// Returns whether two JSON values are equal. Numbers are compared by value.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && is_integer_equal_to_float(a, b)),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => left == right,
    }
}

/// Returns whether an integer and a float, in either order, are exactly equal.
fn is_integer_equal_to_float(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let (integer, float) = if a.is_f64() { (b, a) } else { (a, b) };
    let (Some(integer), Some(float)) = (integer.as_i128(), float.as_f64()) else {
        return false;
    };
    // JSON integers are less than 2^64. Below that limit, the cast to `i128` is exact.
    float.fract() == 0.0 && float.abs() < 2f64.powi(64) && float as i128 == integer
}

/// Returns the reason why `name` is not a valid tool name, or `None` if it is valid.
pub(super) fn name_flaw(name: &str) -> Option<String> {
    match ToolName::parse(name) {
        Some(_) => None,
        None => Some(format!(
            "`{name}` is not a valid tool name: use 1 to 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`, and start with a letter or `_`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_compared_by_value_and_type() {
        for (left, right) in [(json!(12), json!(12.0)), (json!({"a": [1.0]}), json!({"a": [1]}))] {
            assert!(is_equal(&left, &right), "{left} {right}");
        }
        let unequal_pairs = [
            (json!(12), json!("12")),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0)),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0)),
            (json!([1]), json!([1, 2])),
            (json!({"a": null}), json!({})),
            (json!(1), json!(true)),
        ];
        for (left, right) in unequal_pairs {
            assert!(!is_equal(&left, &right) && !is_equal(&right, &left), "{left} {right}");
        }
    }

    #[test]
    fn every_condition_can_hold_and_can_fail() {
        let result = ToolResultView {
            tool: "spend",
            text: r#"{"amount": 12.5}"#,
            is_error: false,
        };
        let failures_of = |expected: &TextMatch| {
            let mut failures = Vec::new();
            expected.check("the last result", result, &mut failures);
            failures
        };
        let new = TextMatch::new;
        let met_conditions = [
            new().tool("spend"),
            new().success(),
            new().equals(result.text),
            new().contains("12.5"),
            new().lacks("13"),
            new().json("/amount", 12.5),
        ];
        let unmet_conditions = [
            new().tool("other"),
            new().error(),
            new().equals("12.5"),
            new().contains("13"),
            new().lacks("12.5"),
            new().json("/amount", 13),
            new().json("/other", 1),
        ];
        for expected in &met_conditions {
            assert_eq!(failures_of(expected), Vec::<String>::new());
        }
        for expected in &unmet_conditions {
            assert_eq!(failures_of(expected).len(), 1, "{expected:?}");
        }
    }
}
