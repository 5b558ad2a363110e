//! Handles in the schemas of tools: ids that some tools return and others take.

use serde_json::Value;

use toolwit_core::ToolDefinition;

/// Returns whether a tool takes a handle: its input schema has a required string property with the handle's name.
pub(crate) fn takes_handle(definition: &ToolDefinition, handle: &str) -> bool {
    let schema = &*definition.input_schema;
    let required = schema.get("required").and_then(Value::as_array);
    declares_string(schema, schema, handle) && required.is_some_and(|names| names.iter().any(|name| name == handle))
}

/// Returns whether a tool returns a handle: its output schema has a string property with the handle's name, in the root
/// object or in the objects of a list.
pub(crate) fn returns_handle(definition: &ToolDefinition, handle: &str) -> bool {
    has_root_handle(definition, handle) || !handle_lists(definition, handle).is_empty()
}

/// Returns whether the root object of a tool's output schema has the handle.
pub(crate) fn has_root_handle(definition: &ToolDefinition, handle: &str) -> bool {
    let schema = definition.output_schema.as_deref();
    schema.is_some_and(|schema| declares_string(schema, schema, handle))
}

/// Returns the names of the root properties of a tool's output schema that are lists of objects with the handle.
pub(crate) fn handle_lists(definition: &ToolDefinition, handle: &str) -> Vec<String> {
    let Some(root) = definition.output_schema.as_deref() else {
        return Vec::new();
    };
    let properties = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let lists = properties.filter(|(_, list)| {
        let items = list
            .get("items")
            .filter(|_| list.get("type").is_some_and(|declared| declared == "array"));
        items.is_some_and(|items| declares_string(root, items, handle))
    });
    lists.map(|(name, _)| name.clone()).collect()
}

/// Returns whether the schema of an object declares a property as a string. The schema can be a `$ref` to a definition
/// in `root`.
fn declares_string(root: &Value, schema: &Value, property: &str) -> bool {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let properties = target.unwrap_or(schema).get("properties");
    let property_type = properties.and_then(|properties| properties.get(property)?.get("type"));
    property_type.is_some_and(|declared| declared == "string")
}
