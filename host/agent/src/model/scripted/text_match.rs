//! What a shown text must be like.

use serde_json::Value;

use super::shown::{Answer, excerpt};
use super::template;
use toolwit_core::ToolName;

/// Says what a text, or the tool result that it is, must be like; everything that is said must hold.
///
/// JSON values are equal when they are the same value: `12` and `12.0` are, `"12"` and `12` are not.
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
    /// Matches anything yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// It is the result of this tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// It is a failure.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.is_error = Some(true);
        self
    }

    /// It is no failure.
    #[must_use]
    pub fn success(mut self) -> Self {
        self.is_error = Some(false);
        self
    }

    /// It is this text and nothing else.
    #[must_use]
    pub fn equals(mut self, text: impl Into<String>) -> Self {
        self.equals = Some(text.into());
        self
    }

    /// This stands somewhere in it.
    #[must_use]
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.contains.push(text.into());
        self
    }

    /// This stands nowhere in it.
    #[must_use]
    pub fn lacks(mut self, text: impl Into<String>) -> Self {
        self.lacks.push(text.into());
        self
    }

    /// It is JSON with this value at the JSON pointer; the empty pointer is the whole.
    #[must_use]
    pub fn json(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.json.push((pointer.into(), value.into()));
        self
    }

    pub(super) fn flaw(&self) -> Option<String> {
        if *self == Self::default() {
            return Some("the match says nothing, so that it could never fail".to_owned());
        }
        if self.contains.iter().any(String::is_empty) {
            return Some("every text contains the empty text, so that the match could never fail".to_owned());
        }
        if self.lacks.iter().any(String::is_empty) {
            return Some("no text lacks the empty text, so that the match could never hold".to_owned());
        }
        let pointer = self
            .json
            .iter()
            .find_map(|(pointer, _)| template::pointer(pointer).err());
        pointer.or_else(|| self.tool.as_deref().and_then(name_flaw))
    }

    pub(super) fn prompt_flaw(&self) -> Option<String> {
        match (&self.tool, self.is_error) {
            (None, None) => self.flaw(),
            _ => Some("`tool` and `is_error` are for results, not for the prompt".to_owned()),
        }
    }

    pub(super) fn check(&self, what: &str, answer: Answer<'_>, failures: &mut Vec<String>) {
        if let Some(tool) = self.tool.as_deref().filter(|tool| *tool != answer.tool) {
            failures.push(format!(
                "expected {what} to be of `{tool}`, but it is of `{}`",
                answer.tool
            ));
        }
        match (self.is_error, answer.is_error) {
            (Some(true), false) => failures.push(format!(
                "expected {what} to be an error, but it is {}",
                excerpt(answer.text)
            )),
            (Some(false), true) => failures.push(format!(
                "expected {what} to be no error, but it is {}",
                excerpt(answer.text)
            )),
            _ => {}
        }
        self.check_text(what, answer.text, failures);
    }

    pub(super) fn check_text(&self, what: &str, text: &str, failures: &mut Vec<String>) {
        let shown = excerpt(text);
        if let Some(equals) = self.equals.as_deref().filter(|equals| *equals != text) {
            failures.push(format!("expected {what} to be {}, but it is {shown}", excerpt(equals)));
        }
        for part in self.contains.iter().filter(|part| !text.contains(part.as_str())) {
            failures.push(format!(
                "expected {what} to contain {}, but it is {shown}",
                excerpt(part)
            ));
        }
        for part in self.lacks.iter().filter(|part| text.contains(part.as_str())) {
            failures.push(format!("expected {what} to lack {}, but it is {shown}", excerpt(part)));
        }
        if self.json.is_empty() {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            failures.push(format!("expected {what} to be JSON, but it is {shown}"));
            return;
        };
        failures.extend(self.json.iter().filter_map(|(pointer, expected)| {
            let why = json_difference(&value, pointer, expected)?;
            Some(format!("expected {what} to have {expected} at `{pointer}`, but {why}"))
        }));
    }
}

fn json_difference(value: &Value, pointer: &str, expected: &Value) -> Option<String> {
    let found = template::pointer(pointer).and_then(|path| template::follow(value, &path).cloned());
    match found {
        Ok(found) if same(&found, expected) => None,
        Ok(found) => Some(format!("it is {}", excerpt(&found.to_string()))),
        Err(why) => Some(why),
    }
}

/// Whether two values are the same, numbers by what they are worth.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && same_mixed(a, b)),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => left == right,
    }
}

/// Compares an integer with a float: equal when the float is that integer exactly.
fn same_mixed(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let (integer, float) = if a.is_f64() { (b, a) } else { (a, b) };
    let (Some(integer), Some(float)) = (integer.as_i128(), float.as_f64()) else {
        return false;
    };
    float.fract() == 0.0 && float.abs() < 2f64.powi(64) && float as i128 == integer
}

/// Says why no tool could have this name.
pub(super) fn name_flaw(name: &str) -> Option<String> {
    match ToolName::parse(name) {
        Some(_) => None,
        None => Some(format!(
            "no tool can have the name `{name}`: 1 to 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`, no digit first"
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
            assert!(same(&left, &right), "{left} {right}");
        }
        let different = [
            (json!(12), json!("12")),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0)),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0)),
            (json!([1]), json!([1, 2])),
            (json!({"a": null}), json!({})),
            (json!(1), json!(true)),
        ];
        for (left, right) in different {
            assert!(!same(&left, &right) && !same(&right, &left), "{left} {right}");
        }
    }

    #[test]
    fn every_kind_of_match_can_hold_and_can_fail() {
        let answer = Answer {
            tool: "spend",
            text: r#"{"amount": 12.5}"#,
            is_error: false,
        };
        let failures = |expected: &TextMatch| {
            let mut failures = Vec::new();
            expected.check("the last result", answer, &mut failures);
            failures
        };
        let new = TextMatch::new;
        let holding = [
            new().tool("spend"),
            new().success(),
            new().equals(answer.text),
            new().contains("12.5"),
            new().lacks("13"),
            new().json("/amount", 12.5),
        ];
        let failing = [
            new().tool("other"),
            new().error(),
            new().equals("12.5"),
            new().contains("13"),
            new().lacks("12.5"),
            new().json("/amount", 13),
            new().json("/other", 1),
        ];
        for expected in &holding {
            assert_eq!(failures(expected), Vec::<String>::new());
        }
        for expected in &failing {
            assert_eq!(failures(expected).len(), 1, "{expected:?}");
        }
    }
}
