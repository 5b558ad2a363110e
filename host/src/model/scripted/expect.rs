//! What a script expects the model to be shown.

use serde_json::Value;

use super::shown::{Answer, Shown, excerpt, quoted};
use super::template;
use crate::tool::ToolName;

/// Says what a model must be shown before a turn is played; everything that is said must hold.
///
/// An expectation that could never fail, or never hold, is refused before the run: one that says nothing, an empty text
/// to find, a name that no tool can have, a tool that is both wanted and unwanted.
///
/// ```
/// use toolwit::model::{Expectation, TextMatch};
///
/// let expectation = Expectation::new()
///     .tools(["customer_c123_get_average_spend"])
///     .no_tools(["customer_c124_get_average_spend"])
///     .last_result(TextMatch::new().json("/id", "c-123"));
/// # let _ = expectation;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectation {
    pub(super) tools: Option<Vec<String>>,
    pub(super) no_tools: Option<Vec<String>>,
    pub(super) prompt: Option<TextMatch>,
    pub(super) last_result: Option<TextMatch>,
    pub(super) results: Option<Vec<TextMatch>>,
}

impl Expectation {
    /// Expects nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These tools are declared, perhaps beside others.
    #[must_use]
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tools
            .get_or_insert_default()
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// None of these tools is declared.
    #[must_use]
    pub fn no_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.no_tools
            .get_or_insert_default()
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// The user's last words fit.
    #[must_use]
    pub fn prompt(mut self, text: TextMatch) -> Self {
        self.prompt = Some(text);
        self
    }

    /// The newest tool result fits.
    #[must_use]
    pub fn last_result(mut self, text: TextMatch) -> Self {
        self.last_result = Some(text);
        self
    }

    /// The results since the model last spoke fit, one by one in call order, and there are no more.
    #[must_use]
    pub fn results(mut self, texts: impl IntoIterator<Item = TextMatch>) -> Self {
        self.results = Some(texts.into_iter().collect());
        self
    }

    /// Says why this could never fail, or never hold.
    pub(super) fn flaw(&self) -> Option<String> {
        if *self == Self::default() {
            return Some("the expectation says nothing, so that it could never fail".to_owned());
        }
        let (tools, no_tools) = (self.tools.as_deref(), self.no_tools.as_deref());
        let lists = [("tools", tools), ("no_tools", no_tools)];
        let names = lists
            .into_iter()
            .find_map(|(key, names)| names.and_then(|names| names_flaw(key, names)));
        let both = || tools.and_then(|tools| tools.iter().find(|name| no_tools.is_some_and(|no| no.contains(name))));
        let answers = self.last_result.iter().chain(self.results.iter().flatten());
        names
            .or_else(|| both().map(|name| format!("`{name}` is both in `tools` and in `no_tools`")))
            .or_else(|| self.prompt.as_ref().and_then(TextMatch::prompt_flaw))
            .or_else(|| answers.into_iter().find_map(TextMatch::flaw))
    }

    /// Says everything that does not hold; nothing when all does.
    pub(super) fn failures(&self, shown: &Shown<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        for name in self.tools.iter().flatten().filter(|name| !shown.declares(name)) {
            failures.push(format!(
                "expected the tool `{name}`, but {}",
                shown.describe_tools(name)
            ));
        }
        for name in self.no_tools.iter().flatten().filter(|name| shown.declares(name)) {
            failures.push(format!("expected no tool `{name}`, but it is declared"));
        }
        if let Some(expected) = &self.prompt {
            match shown.prompt() {
                Some(text) => expected.check_text("the prompt", text, &mut failures),
                None => failures.push("expected a prompt, but there is none".to_owned()),
            }
        }
        if let Some(expected) = &self.last_result {
            match shown.last_answer(None) {
                Some(answer) => expected.check("the last result", answer, &mut failures),
                None => failures.push("expected a tool result, but there is none".to_owned()),
            }
        }
        if let Some(expected) = &self.results {
            check_round(expected, &shown.round(), &mut failures);
        }
        failures
    }
}

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

    fn flaw(&self) -> Option<String> {
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

    fn prompt_flaw(&self) -> Option<String> {
        match (&self.tool, self.is_error) {
            (None, None) => self.flaw(),
            _ => Some("`tool` and `is_error` are for results, not for the prompt".to_owned()),
        }
    }

    fn check(&self, what: &str, answer: Answer<'_>, failures: &mut Vec<String>) {
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

    fn check_text(&self, what: &str, text: &str, failures: &mut Vec<String>) {
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

fn check_round(expected: &[TextMatch], answers: &[Answer<'_>], failures: &mut Vec<String>) {
    if expected.len() != answers.len() {
        let tools: Vec<&str> = answers.iter().map(|answer| answer.tool).collect();
        let shown = match tools.is_empty() {
            true => "none".to_owned(),
            false => format!("{}, of {}", tools.len(), quoted(&tools)),
        };
        failures.push(format!(
            "expected {} results since the model spoke, but there are {shown}",
            expected.len()
        ));
        return;
    }
    for (index, (expected, answer)) in expected.iter().zip(answers).enumerate() {
        expected.check(&format!("result {index}"), *answer, failures);
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

fn names_flaw(key: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return Some(format!("`{key}` names no tool, so that it could never fail"));
    }
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    names
        .iter()
        .find_map(|name| name_flaw(name))
        .or_else(|| twice.map(|(_, name)| format!("`{key}` names `{name}` twice")))
}

fn name_flaw(name: &str) -> Option<String> {
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
    fn an_expectation_that_could_never_fail_is_refused() {
        let matches = |text: TextMatch| Expectation::new().last_result(text);
        let vacuous = [
            Expectation::new(),
            Expectation::new().tools(Vec::<String>::new()),
            Expectation::new().no_tools(["no such name"]),
            Expectation::new().tools(["a", "a"]),
            Expectation::new().tools(["a"]).no_tools(["a"]),
            matches(TextMatch::new()),
            matches(TextMatch::new().contains("")),
            matches(TextMatch::new().lacks("")),
            matches(TextMatch::new().json("amount", 1)),
            matches(TextMatch::new().tool("")),
            Expectation::new().results([TextMatch::new()]),
            Expectation::new().prompt(TextMatch::new().error()),
        ];
        for expectation in vacuous {
            assert!(expectation.flaw().is_some(), "{expectation:?}");
        }
        assert_eq!(
            Expectation::new().results([]).flaw(),
            None,
            "no results at all can fail"
        );
        assert_eq!(matches(TextMatch::new().json("", 1)).flaw(), None);
    }

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
