//! Patterns of tools and arguments in policies and remembered answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Arguments, Tool, ToolId};

/// A pattern of tool ids.
///
/// | pattern | tools |
/// |---|---|
/// | `files#write` | the tool with this id |
/// | `crm#[method]customer.delete` | the method of every entity of the type |
/// | `files` | all tools of the plugin `files`; likewise `native` for native tools, and `host` for tools of the host |
/// | `files/*`, `*#write` | all tools whose id matches; `*` stands for any text, also an empty one |
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Creates a pattern from its text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern matches the id of a tool, or of a tool that it decorates.
    #[must_use]
    pub fn matches(&self, tool: &dyn Tool) -> bool {
        self.matches_id(&tool.definition().id) || tool.inner_tool().is_some_and(|inner| self.matches(&**inner))
    }

    /// Returns whether the pattern matches an id. The id of a method that is bound to an entity also matches if its id without
    /// the entity matches.
    #[must_use]
    pub fn matches_id(&self, id: &ToolId) -> bool {
        let is_owner_match = !self.0.contains(['#', '/', '*']) && id.owner() == self.0;
        is_owner_match || glob(&self.0, id.as_str()) || glob(&self.0, id.unbound().as_str())
    }
}

/// A pattern of arguments: the values that some parameters must have.
///
/// In a string value, `*` stands for any text. An argument that contains `..` does not match a value with `*`, so that the
/// value `docs/*` does not match the path `docs/../secrets`. A value without `*` must be equal to the argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArgumentPattern(BTreeMap<String, Value>);

impl ArgumentPattern {
    /// Creates a pattern from the values of some parameters. The other parameters can have any value.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// Returns whether the pattern matches the arguments.
    #[must_use]
    pub fn matches(&self, arguments: &Arguments) -> bool {
        let is_match = |(name, expected): (&String, &Value)| match (expected, arguments.get(name)) {
            (Value::String(pattern), Some(Value::String(text))) if pattern.contains('*') => {
                !text.contains("..") && glob(pattern, text)
            }
            (expected, argument) => argument == Some(expected),
        };
        self.0.iter().all(is_match)
    }
}

/// Returns whether a text matches a pattern in which `*` stands for any text. Takes linear time per star.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((prefix, remainder)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(prefix) else {
        return false;
    };
    let mut parts: Vec<_> = remainder.split('*').collect();
    let suffix = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(position) = text.find(part) else { return false };
        text = &text[position + part.len()..];
    }
    text.ends_with(suffix)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pattern_matches_ids_owners_and_ids_with_stars() {
        let matches = |pattern: &str, id: &str| ToolPattern::new(pattern).matches_id(&ToolId::from_text(id));
        assert!(matches("files#write", "files#write"));
        assert!(matches("files", "files/demo:files/api@1.0.0#write") && matches("files", "files#write"));
        assert!(!matches("files", "files-evil#write") && !matches("files", "evil#files"));
        assert!(matches("*#write", "files#write") && !matches("*#write", "files#write-all"));
        assert!(matches("files/*#r*d", "files/a:b/c#read"));
        assert!(matches(
            "crm#[method]customer.delete",
            "crm#[method]customer.delete(c-1)"
        ));
        assert!(!matches(
            "crm#[method]customer.delete(c-1)",
            "crm#[method]customer.delete(c-2)"
        ));
    }

    #[test]
    fn arguments_match_by_value_and_stars_do_not_match_parent_directories() {
        let pattern = ArgumentPattern::new([("path".to_owned(), json!("/tmp/*")), ("mode".to_owned(), json!(1))]);
        let matches = |arguments: Value| pattern.matches(arguments.as_object().unwrap());
        assert!(matches(json!({"path": "/tmp/a", "mode": 1, "other": true})));
        assert!(!matches(json!({"path": "/tmp/../etc/passwd", "mode": 1})));
        assert!(!matches(json!({"path": "/tmp/a", "mode": 2})) && !matches(json!({"path": "/tmp/a"})));
        assert!(!matches(json!({"path": ["/tmp/a"], "mode": 1})));
    }
}
