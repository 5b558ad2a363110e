//! Validation of the tools that a component listed.

use std::collections::HashMap;

use serde_json::Value;
use tokio::time::Instant;

use crate::values::dynamic_export::{DiscoveredTool, ListedTool};
use toolwit_core::limits::{DESCRIPTION_CHARS_MAX, DYNAMIC_TOOLS_MAX};
use toolwit_core::text::{printable, snake_case};
use toolwit_core::{ToolName, UntrustedSchemas};

/// Validates the tools that a component listed. Blocks. Checks the deadline before each tool.
///
/// # Errors
/// The reason why the tools cannot be used, with the name of an invalid tool or the names of two duplicates, if any.
pub(super) fn validate(listed_tools: Vec<ListedTool>, deadline: Instant) -> Result<Vec<DiscoveredTool>, String> {
    if listed_tools.len() > DYNAMIC_TOOLS_MAX {
        let count = listed_tools.len();
        return Err(format!(
            "it lists {count} tools; at most {DYNAMIC_TOOLS_MAX} are allowed"
        ));
    }
    // The listed names, by the name that the tool has in a tool set.
    let mut listed_names: HashMap<String, String> = HashMap::new();
    let mut tools = Vec::with_capacity(listed_tools.len());
    let mut schemas = UntrustedSchemas::default();
    for tool in listed_tools {
        if Instant::now() >= deadline {
            return Err("validating their schemas takes too long".to_owned());
        }
        let name = ToolName::parse(&tool.name).ok_or_else(|| {
            let name: String = printable(&tool.name).chars().take(100).collect();
            format!("`{name}` cannot be the name of a tool")
        })?;
        if let Some(other_name) = listed_names.insert(snake_case(name.as_str()), tool.name.clone()) {
            return Err(format!(
                "it lists `{name}` and `{other_name}`, which have the same name in a tool set"
            ));
        }
        tools
            .push(validate_tool(tool, &mut schemas).map_err(|why| format!("the tool `{name}` cannot be used: {why}"))?);
    }
    Ok(tools)
}

fn validate_tool(tool: ListedTool, schemas: &mut UntrustedSchemas) -> Result<DiscoveredTool, String> {
    let input_schema = schemas
        .read(&tool.input_schema)
        .map_err(|why| format!("its input schema {why}"))?;
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema must have `\"type\": \"object\"`".to_owned());
    }
    let output_schema = tool.output_schema.map(|text| schemas.read(&text));
    let output_schema = output_schema
        .transpose()
        .map_err(|why| format!("its output schema {why}"))?;
    let description = printable(tool.description.trim());
    Ok(DiscoveredTool {
        name: tool.name,
        description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
        input_schema,
        output_schema,
        effect: tool.effect,
    })
}
