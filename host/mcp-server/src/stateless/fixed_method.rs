//! A method of an entity as a fixed tool.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::handle_table::HANDLE_TTL;
use toolwit::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};

/// A type of entities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntityKind {
    /// The plugin that has the type.
    pub(super) plugin: String,
    /// The name of the type in tool names.
    pub(super) name: String,
}

/// The definition of a method that takes a handle. It implements [`Tool`] only to get a name from the tool set. Calls
/// run in the session of the handle.
pub(super) struct FixedMethod {
    definition: ToolDefinition,
    pub(super) kind: EntityKind,
    /// The parameter that takes the handle.
    pub(super) parameter: String,
}

impl FixedMethod {
    /// Creates the definition from `by_id`, the definition of the method with the entity's id as its first parameter.
    /// Returns `None` if `by_id` has no parameter.
    pub(super) fn new(kind: EntityKind, by_id: &ToolDefinition) -> Option<Self> {
        let mut schema = Value::clone(&by_id.input_schema);
        let fields = schema.as_object_mut()?;
        let properties = fields.get_mut("properties")?.as_object_mut()?;
        let by_id_name = properties.keys().next()?.clone();
        properties.shift_remove(&by_id_name);
        let mut parameter = kind.name.clone();
        while properties.contains_key(&parameter) {
            parameter.push_str("_handle");
        }
        let handle_schema = json!({"type": "string", "description": format!("The `handle` of a `{}`.", kind.name)});
        properties.shift_insert(0, parameter.clone(), handle_schema);
        if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
            let others = required.drain(..).filter(|name| *name != json!(by_id_name));
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
        let from = match sources {
            [] => String::new(),
            names => format!(" from {}", quoted(names)),
        };
        let text = format!(
            "\n\nTakes the `handle` of a `{}`{from}. A handle may expire if it is not used for {minutes} minutes.",
            self.kind.name
        );
        definition.description.push_str(&text);
        definition
    }
}

#[async_trait]
impl Tool for FixedMethod {
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
        let method = FixedMethod::new(kind, &by_id).unwrap();
        assert_eq!(
            method.describe(&["search_customer".to_owned()]).description,
            "Lists orders.\n\nTakes the `handle` of a `customer` from `search_customer`. A handle may expire if it is not used \
             for 30 minutes."
        );
    }
}
