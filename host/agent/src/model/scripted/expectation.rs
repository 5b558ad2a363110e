//! Conditions of a script on the requests that the model receives.

use super::request_view::{RequestView, ToolResultView, quoted_list};
use super::text_match::{TextMatch, name_flaw};

/// The conditions on a request under which a turn is played. All of them must hold.
///
/// An expectation that can never fail or can never hold is an error of the script. Examples are an empty expectation, the
/// condition that a text contains the empty text, an invalid tool name, and a tool that is both expected and excluded. The
/// error occurs when the script is parsed or, for a script that is built in Rust, when the turn would be played.
///
/// ```
/// use toolwit_agent::model::{Expectation, TextMatch};
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
    /// Creates an expectation without conditions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires these tools to be declared. Others may be declared too.
    #[must_use]
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tools
            .get_or_insert_default()
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// Requires these tools not to be declared.
    #[must_use]
    pub fn no_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.no_tools
            .get_or_insert_default()
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// Requires the user's latest message to match.
    #[must_use]
    pub fn prompt(mut self, text: TextMatch) -> Self {
        self.prompt = Some(text);
        self
    }

    /// Requires the latest tool result to match.
    #[must_use]
    pub fn last_result(mut self, text: TextMatch) -> Self {
        self.last_result = Some(text);
        self
    }

    /// Requires the results since the model's previous response to match: the first result the first text, and so on in call
    /// order. The numbers of results and texts must be equal.
    #[must_use]
    pub fn results(mut self, texts: impl IntoIterator<Item = TextMatch>) -> Self {
        self.results = Some(texts.into_iter().collect());
        self
    }

    /// Returns the reason why the expectation can never fail or can never hold, or `None` if it is valid.
    pub(super) fn flaw(&self) -> Option<String> {
        if *self == Self::default() {
            return Some("the expectation is empty, so it can never fail".to_owned());
        }
        let (tools, no_tools) = (self.tools.as_deref(), self.no_tools.as_deref());
        let lists = [("tools", tools), ("no_tools", no_tools)];
        let list_flaw = lists
            .into_iter()
            .find_map(|(key, names)| names.and_then(|names| names_flaw(key, names)));
        let contradiction = || {
            let is_excluded = |name: &&String| no_tools.is_some_and(|excluded| excluded.contains(name));
            tools.and_then(|tools| tools.iter().find(is_excluded))
        };
        let results = self.last_result.iter().chain(self.results.iter().flatten());
        list_flaw
            .or_else(|| contradiction().map(|name| format!("`{name}` is both in `tools` and in `no_tools`")))
            .or_else(|| self.prompt.as_ref().and_then(TextMatch::prompt_flaw))
            .or_else(|| results.into_iter().find_map(TextMatch::flaw))
    }

    /// Returns a message for each condition that does not hold.
    pub(super) fn failures(&self, request: &RequestView<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        for name in self.tools.iter().flatten().filter(|name| !request.declares(name)) {
            failures.push(format!(
                "expected the tool `{name}`, but {}",
                request.describe_tools(name)
            ));
        }
        for name in self.no_tools.iter().flatten().filter(|name| request.declares(name)) {
            failures.push(format!("expected no tool `{name}`, but it is declared"));
        }
        if let Some(expected) = &self.prompt {
            match request.prompt() {
                Some(text) => expected.check_text("the prompt", text, &mut failures),
                None => failures.push("expected a prompt, but there is none".to_owned()),
            }
        }
        if let Some(expected) = &self.last_result {
            match request.last_result(None) {
                Some(result) => expected.check("the last result", result, &mut failures),
                None => failures.push("expected a tool result, but there is none".to_owned()),
            }
        }
        if let Some(expected) = &self.results {
            check_results(expected, &request.latest_results(), &mut failures);
        }
        failures
    }
}

/// Adds a message for each condition that a result does not meet, or one message if the number of results differs.
fn check_results(expected: &[TextMatch], results: &[ToolResultView<'_>], failures: &mut Vec<String>) {
    if expected.len() != results.len() {
        let tools: Vec<&str> = results.iter().map(|result| result.tool).collect();
        let actual = if tools.is_empty() {
            "none".to_owned()
        } else {
            format!("{}, of {}", tools.len(), quoted_list(&tools))
        };
        failures.push(format!(
            "expected {} results since the model's previous response, but there are {actual}",
            expected.len()
        ));
        return;
    }
    for (index, (expected, result)) in expected.iter().zip(results).enumerate() {
        expected.check(&format!("result {index}"), *result, failures);
    }
}

/// Returns the reason why a list of tool names is invalid, or `None` if it is valid. `key` is the key of the list in a scenario.
fn names_flaw(key: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return Some(format!("`{key}` is empty, so it can never fail"));
    }
    let duplicate = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name));
    names
        .iter()
        .find_map(|name| name_flaw(name))
        .or_else(|| duplicate.map(|(_, name)| format!("`{key}` contains `{name}` twice")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_that_can_never_fail_or_never_hold_has_a_flaw() {
        let with_result = |text: TextMatch| Expectation::new().last_result(text);
        let flawed = [
            Expectation::new(),
            Expectation::new().tools(Vec::<String>::new()),
            Expectation::new().no_tools(["no such name"]),
            Expectation::new().tools(["a", "a"]),
            Expectation::new().tools(["a"]).no_tools(["a"]),
            with_result(TextMatch::new()),
            with_result(TextMatch::new().contains("")),
            with_result(TextMatch::new().lacks("")),
            with_result(TextMatch::new().json("amount", 1)),
            with_result(TextMatch::new().tool("")),
            Expectation::new().results([TextMatch::new()]),
            Expectation::new().prompt(TextMatch::new().error()),
        ];
        for expectation in flawed {
            assert!(expectation.flaw().is_some(), "{expectation:?}");
        }
        assert_eq!(
            Expectation::new().results([]).flaw(),
            None,
            "an empty list of results can fail"
        );
        assert_eq!(with_result(TextMatch::new().json("", 1)).flaw(), None);
    }
}
