//! Tools whose schemas WIT cannot express. The conformance suite of the Model Context Protocol calls them by these names.

wit_bindgen::generate!({ path: "wit", world: "schemas", generate_all });

use exports::toolwit::plugin::dynamic::{Guest, ToolDefinition, ToolError, ToolResult};

/// A schema with keywords of JSON Schema 2020-12.
const CONTACT: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {
        "$anchor": "addressDef",
        "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
}"##;

struct Schemas;

impl Guest for Schemas {
    fn tools() -> Result<Vec<ToolDefinition>, String> {
        Ok(vec![ToolDefinition {
            name: "json_schema_2020_12_tool".to_owned(),
            description: "Returns a contact.".to_owned(),
            input_schema: CONTACT.to_owned(),
            output_schema: None,
        }])
    }

    fn call(_name: String, arguments: String) -> Result<ToolResult, ToolError> {
        Ok(ToolResult {
            for_llm: arguments,
            for_user: None,
            silent: false,
            is_error: false,
            artifacts: Vec::new(),
            background: None,
        })
    }
}

export!(Schemas);
