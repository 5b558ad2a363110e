//! What a script expects the model to be shown.

use super::shown::{Answer, Shown, quoted};
use super::text_match::{TextMatch, name_flaw};

/// Says what a model must be shown before a turn is played; everything that is said must hold.
///
/// An expectation that could never fail, or never hold, is refused before the run: one that says nothing, an empty text
/// to find, a name that no tool can have, a tool that is both wanted and unwanted.
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

#[cfg(test)]
mod tests {
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
}
