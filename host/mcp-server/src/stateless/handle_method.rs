//! A method of an entity as a tool that takes a handle.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::handle_table::HANDLE_TTL;
use toolwit::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};

/// The type of an entity: a resource of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntityKind {
    /// The name of the plugin.
    pub(super) plugin: String,
    /// The name of the type in tool names.
    pub(super) name: String,
}

/// The definition of a method that takes a handle. This type implements [`Tool`] only to get a name from the tool set.
/// A call runs the method in the session of the handle, and not this implementation.
pub(super) struct HandleMethod {
    definition: ToolDefinition,
    pub(super) kind: EntityKind,
    /// The parameter that takes the handle.
    pub(super) parameter: String,
}

impl HandleMethod {
    /// Creates the definition from `by_id`, the definition of the method with the entity's id as its first parameter.
    /// Replaces this parameter by a handle. Returns `None` if `by_id` has no parameter.
    pub(super) fn new(kind: EntityKind, by_id: &ToolDefinition) -> Option<Self> {
        let mut schema = Value::clone(&by_id.input_schema);
        let fields = schema.as_object_mut()?;
        let properties = fields.get_mut("properties")?.as_object_mut()?;
        let id_parameter = properties.keys().next()?.clone();
        properties.shift_remove(&id_parameter);
        let mut parameter = kind.name.clone();
        while properties.contains_key(&parameter) {
            parameter.push_str("_handle");
        }
        let handle_schema = json!({"type": "string", "description": format!("The `handle` of a `{}`.", kind.name)});
        properties.shift_insert(0, parameter.clone(), handle_schema);
        if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
            let others = required.drain(..).filter(|name| *name != json!(id_parameter));
            let others: Vec<_> = others.collect();
            required.push(json!(parameter));
            required.extend(others);
        }
        let mut definition = by_id.clone();
        definition.input_schema = std::sync::Arc::new(schema);
        Some(Self {
            definition,
            kind,
            parameter,
        })
    }

    /// Returns the definition, with the sources and the validity of handles in its description. The use of another
    /// handle of the same session extends the validity of an unused handle.
    pub(super) fn describe(&self, sources: &[String]) -> ToolDefinition {
        let mut definition = self.definition.clone();
        let minutes = HANDLE_TTL.as_secs() / 60;
        let source_text = match sources {
            [] => String::new(),
            names => format!(" from {}", quoted(names)),
        };
        let text = format!(
            "\n\nTakes the `handle` of a `{}`{source_text}. A handle may expire if it is not used for {minutes} minutes.",
            self.kind.name
        );
        definition.description.push_str(&text);
        definition
    }
}

#[async_trait]
impl Tool for HandleMethod {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, _: Arguments, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Err(ToolError::invalid_arguments(format!(
            "/{}: it is not a handle",
            self.parameter
        )))
    }
}

/// Returns names in backticks: `` `a`, `b` or `c` ``.
pub(super) fn quoted(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit::tool::ToolId;

    #[test]
    fn the_description_has_the_sources_and_the_earliest_expiry_of_handles() {
        let kind = EntityKind {
            plugin: "crm".to_owned(),
            name: "customer".to_owned(),
        };
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
        let by_id = ToolDefinition::new(
            ToolId::host("customer_orders"),
            "customer_orders",
            "Lists orders.",
            schema,
        );
        let method = HandleMethod::new(kind, &by_id).unwrap();
        assert_eq!(
            method.describe(&["search_customer".to_owned()]).description,
            "Lists orders.\n\nTakes the `handle` of a `customer` from `search_customer`. A handle may expire if it is not used \
             for 30 minutes."
        );
    }
}
