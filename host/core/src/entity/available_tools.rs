//! The list of tool names in an entity's JSON.

use serde_json::{Value, json};

use crate::text::id_text;
use crate::{ToolName, ToolProvider, ToolResult};

/// The property of an entity's JSON that lists the names of its tools, as in
/// `{"type": "customer", "id": "c-123", "available_tools": […]}`.
pub const AVAILABLE_TOOLS: &str = "available_tools";

/// Replaces the tool names that a result lists for its entities with the names that the tool set assigned.
///
/// The code that creates a result cannot know the assigned names. In each JSON object whose `type` and `id` match a provider of
/// the result, the list under [`AVAILABLE_TOOLS`] is replaced by the return value of `names_of` for this provider. If `names_of`
/// returns no names, the list is removed. Lists in other objects do not change.
pub fn name_available_tools(result: &mut ToolResult, names_of: impl FnMut(&dyn ToolProvider) -> Vec<ToolName>) {
    if result.providers.is_empty() {
        return;
    }
    let providers = std::mem::take(&mut result.providers);
    let mut names = ProviderNames::new(providers.iter().map(AsRef::as_ref), names_of);
    result.rewrite_value(|value| names.write_into(value));
    result.providers = providers;
}

/// The tool names of each provider of a result.
struct ProviderNames(Vec<NamedProvider>);

struct NamedProvider {
    /// The value of `type` in the objects of the provider.
    kind: String,
    /// The value of `id` in the objects of the provider. `None` matches every object of the type.
    id: Option<String>,
    names: Vec<ToolName>,
    /// Whether an object has already received the names.
    is_used: bool,
}

impl ProviderNames {
    fn new<'p>(
        providers: impl Iterator<Item = &'p (dyn ToolProvider + 'p)>,
        mut names_of: impl FnMut(&dyn ToolProvider) -> Vec<ToolName>,
    ) -> Self {
        let named_providers = providers.map(|provider| NamedProvider {
            kind: provider.prefix().to_owned(),
            id: provider.instance_id(),
            names: names_of(provider),
            is_used: false,
        });
        Self(named_providers.collect())
    }

    /// Replaces the lists in a value. Returns whether the value changed.
    fn write_into(&mut self, value: &mut Value) -> bool {
        match value {
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |is_changed, item| self.write_into(item) | is_changed),
            Value::Object(fields) => {
                let mut is_changed = false;
                if fields.contains_key(AVAILABLE_TOOLS)
                    && let Some(names) = self.names_for(fields.get("type"), fields.get("id"))
                {
                    if names.is_empty() {
                        fields.shift_remove(AVAILABLE_TOOLS);
                    } else {
                        fields.insert(AVAILABLE_TOOLS.to_owned(), json!(names));
                    }
                    is_changed = true;
                }
                fields
                    .values_mut()
                    .fold(is_changed, |is_changed, field| self.write_into(field) | is_changed)
            }
            _ => false,
        }
    }

    /// Returns the names of the provider whose type and id are those of an object. If several providers match, prefers a
    /// provider whose names are not used yet, then a provider with an id, then the first provider of the result.
    fn names_for(&mut self, kind: Option<&Value>, id: Option<&Value>) -> Option<&[ToolName]> {
        let (kind, id) = (kind?.as_str()?, id.and_then(id_text));
        let is_match =
            |provider: &&mut NamedProvider| provider.kind == kind && (provider.id.is_none() || provider.id == id);
        let mut matches: Vec<_> = self.0.iter_mut().filter(is_match).collect();
        matches.sort_by_key(|provider| (provider.is_used, provider.id.is_none()));
        let provider = matches.into_iter().next()?;
        provider.is_used = true;
        Some(&provider.names)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::NativeEntity;

    fn tool_name(name: &str) -> ToolName {
        ToolName::parse(name).unwrap()
    }

    fn customer(id: &str) -> Arc<dyn ToolProvider> {
        Arc::new(NativeEntity::new("customer", Arc::new(())).with_id(id))
    }

    // accept: 39
    #[test]
    fn each_entity_lists_the_assigned_names_of_its_tools() {
        let object = |id: &str, list: Value| json!({"type": "customer", "id": id, "available_tools": list, "n": 1});
        let original = json!({"found": [object("a", json!(["x"])), object("b", json!(["x"]))]});
        let mut result = ToolResult::value(original)
            .with_provider(customer("a"))
            .with_provider(customer("b"));
        name_available_tools(&mut result, |provider| match provider.instance_id().as_deref() {
            Some("a") => vec![tool_name("x")],
            _ => vec![tool_name("x_2")],
        });
        let expected = json!({"found": [object("a", json!(["x"])), object("b", json!(["x_2"]))]});
        assert_eq!(result.value, Some(expected.clone()));
        assert_eq!(result.for_llm, expected.to_string(), "the text for the model");
        assert_eq!(result.providers.len(), 2);
    }

    #[test]
    fn list_of_a_provider_without_tools_is_removed() {
        let mut result = ToolResult::text(r#"{"type":"customer","id":"a","available_tools":["x"]}"#);
        result = result.with_provider(customer("a"));
        name_available_tools(&mut result, |_| Vec::new());
        assert_eq!(result.for_llm, r#"{"type":"customer","id":"a"}"#);
    }

    #[test]
    fn other_objects_and_text_that_is_not_json_do_not_change() {
        let text = r#"[{"type": "order", "id": "a", "available_tools": ["y"]}, {"available_tools": 3}, "text"]"#;
        let mut result = ToolResult::text(text).with_provider(customer("a"));
        name_available_tools(&mut result, |_| vec![tool_name("x")]);
        assert_eq!(result.for_llm, text, "byte for byte");
        let mut result_with_prose = ToolResult::value(json!({"type": "customer", "id": "a", "available_tools": ["y"]}));
        result_with_prose.for_llm = "Found Ada.".to_owned();
        result_with_prose = result_with_prose.with_provider(customer("a"));
        name_available_tools(&mut result_with_prose, |_| vec![tool_name("x")]);
        assert_eq!(result_with_prose.for_llm, "Found Ada.");
        assert_eq!(result_with_prose.value.unwrap()["available_tools"], json!(["x"]));
    }
}
