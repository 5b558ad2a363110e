//! Converts tool definitions.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

use super::revision::Revision;
use toolwit::ToolDefinition;
use toolwit::tool::AVAILABLE_TOOLS;

/// The property that contains a result's value, if the client expects an object and the value is not an object.
pub(super) const RESULT_PROPERTY: &str = "result";

/// The property of an entity that contains its handle.
pub(crate) const HANDLE_PROPERTY: &str = "handle";

/// The form of the structured content of a tool's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultShape {
    /// The client receives no output schema for the tool.
    Untyped,
    /// The value itself.
    Plain,
    /// An object with the value under [`RESULT_PROPERTY`].
    Wrapped,
}

/// Returns the form of the structured content of a tool's results. Up to revision 2025-11-25, the content must be an
/// object.
pub(crate) fn result_shape(definition: &ToolDefinition, revision: Revision) -> ResultShape {
    let Some(schema) = &definition.output_schema else {
        return ResultShape::Untyped;
    };
    if revision == Revision::Stateless || schema["type"] == "object" {
        return ResultShape::Plain;
    }
    // A reference to a part of the schema would point elsewhere after wrapping.
    if has_reference(schema) {
        ResultShape::Untyped
    } else {
        ResultShape::Wrapped
    }
}

/// Converts the definition of a tool for a client that uses `revision`.
pub(crate) fn tool(name: &str, definition: &ToolDefinition, revision: Revision) -> Tool {
    let input_schema = object(&definition.input_schema).unwrap_or_else(|| Arc::new(any_object()));
    let tool = Tool::new(name.to_owned(), definition.description.clone(), input_schema);
    match (result_shape(definition, revision), &definition.output_schema) {
        (ResultShape::Plain, Some(schema)) => match object(&with_handles(schema)) {
            Some(schema) => tool.with_raw_output_schema(schema),
            None => tool,
        },
        (ResultShape::Wrapped, Some(schema)) => {
            tool.with_raw_output_schema(Arc::new(wrapper_schema(&with_handles(schema))))
        }
        _ => tool,
    }
}

/// Adds the property of handles to the schemas of entities in an output schema.
fn with_handles(schema: &Value) -> Value {
    let mut schema = schema.clone();
    add_handles(&mut schema);
    schema
}

fn add_handles(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties")
                && properties.contains_key(AVAILABLE_TOOLS)
            {
                let position = properties.keys().position(|name| name == "id");
                let position = position.map_or(properties.len(), |position| position + 1);
                properties.shift_insert(position, HANDLE_PROPERTY.to_owned(), json!({"type": "string"}));
            }
            fields.values_mut().for_each(add_handles);
        }
        Value::Array(items) => items.iter_mut().for_each(add_handles),
        _ => {}
    }
}

fn object(schema: &Value) -> Option<Arc<JsonObject>> {
    schema.as_object().cloned().map(Arc::new)
}

/// Returns the schema of any object.
fn any_object() -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema
}

/// Returns the schema of an object whose property [`RESULT_PROPERTY`] has the given schema.
fn wrapper_schema(schema: &Value) -> JsonObject {
    let mut outer = JsonObject::new();
    outer.insert("type".to_owned(), json!("object"));
    outer.insert("properties".to_owned(), json!({RESULT_PROPERTY: schema}));
    outer.insert("required".to_owned(), json!([RESULT_PROPERTY]));
    outer
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.keys().any(|key| key == "$ref" || key == "$dynamicRef") || fields.values().any(has_reference)
        }
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwit::tool::ToolId;

    fn definition(output_schema: Value) -> ToolDefinition {
        let input_schema = json!({"type": "object", "properties": {}});
        ToolDefinition::new(ToolId::native("x"), "x", "Does x.", input_schema).with_output_schema(output_schema)
    }

    #[test]
    fn results_that_are_not_objects_are_wrapped_only_in_sessions() {
        let list = definition(json!({"type": "array", "items": {"type": "string"}}));
        let session_schema = tool("x", &list, Revision::Session)
            .output_schema
            .map(|schema| json!(*schema));
        let expected = json!({
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"type": "string"}}},
            "required": ["result"],
        });
        assert_eq!(session_schema, Some(expected));
        let stateless_schema = tool("x", &list, Revision::Stateless)
            .output_schema
            .map(|schema| json!(*schema));
        assert_eq!(stateless_schema, list.output_schema.as_deref().cloned());
    }

    #[test]
    fn the_schema_of_an_entity_has_its_handle() {
        let entity = json!({"type": "object", "properties": {
            "type": {"const": "cart"}, "id": {"type": "string"}, "total": {"type": "integer"}, "available_tools": {}
        }});
        let list = definition(json!({"type": "array", "items": entity}));
        let schema = tool("x", &list, Revision::Stateless)
            .output_schema
            .map(|schema| json!(*schema));
        let schema = schema.unwrap_or_default();
        let properties = schema["items"]["properties"].as_object();
        let names: Vec<_> = properties
            .into_iter()
            .flat_map(|properties| properties.keys())
            .collect();
        assert_eq!(names, ["type", "id", "handle", "total", "available_tools"]);
        let plain = definition(json!({"type": "object", "properties": {"id": {}}}));
        let schema = tool("x", &plain, Revision::Session)
            .output_schema
            .map(|schema| json!(*schema));
        assert_eq!(schema, plain.output_schema.as_deref().cloned());
    }

    #[test]
    fn objects_are_never_wrapped_and_schemas_with_references_are_left_out() {
        let record = definition(json!({"type": "object", "properties": {}}));
        assert_eq!(result_shape(&record, Revision::Session), ResultShape::Plain);
        let list = definition(json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {}}}));
        assert_eq!(result_shape(&list, Revision::Session), ResultShape::Untyped);
        assert_eq!(tool("x", &list, Revision::Session).output_schema, None);
    }
}
