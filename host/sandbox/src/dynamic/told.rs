//! What a component told about its tools, checked and kept.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::schema::{self, Spent};
use crate::inspect::annotations::DESCRIPTION_CHARS_MAX;
use crate::values::types::Shape;
use toolwit_core::text::printable;
use toolwit_core::text::snake_case;
use toolwit_core::{ToolDefinition, ToolId, ToolName};

/// How many tools one component may tell. A model chooses badly among far fewer.
pub(super) const TOOLS_MAX: usize = 256;

/// A tool as the component described it, fit to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToldTool {
    name: String,
    description: String,
    input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
}

/// A `tool-definition` as it comes out of the guest.
#[derive(Debug, Deserialize)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: String,
    pub(super) output_schema: Option<String>,
}

/// Checks all that a component told, which may take until then. The error says which tool is wrong, and how. Blocks.
pub(super) fn check(written: Vec<Written>, until: Instant) -> Result<Vec<ToldTool>, String> {
    if written.len() > TOOLS_MAX {
        let count = written.len();
        return Err(format!("it tells {count} tools; at most {TOOLS_MAX} are taken"));
    }
    let mut names: HashMap<String, String> = HashMap::new();
    let mut told = Vec::with_capacity(written.len());
    let mut spent = Spent::default();
    for tool in written {
        if Instant::now() >= until {
            return Err("their schemas take too long to check".to_owned());
        }
        let name = ToolName::parse(&tool.name).ok_or_else(|| {
            let name: String = printable(&tool.name).chars().take(100).collect();
            format!("`{name}` cannot be the name of a tool")
        })?;
        if let Some(other) = names.insert(snake_case(name.as_str()), tool.name.clone()) {
            return Err(format!("it tells `{name}` and `{other}`, which are one name"));
        }
        told.push(ToldTool::read(tool, &mut spent).map_err(|why| format!("the tool `{name}` cannot be used: {why}"))?);
    }
    Ok(told)
}

impl ToldTool {
    fn read(written: Written, spent: &mut Spent) -> Result<Self, String> {
        let input_schema =
            schema::read(&written.input_schema, spent).map_err(|why| format!("its input schema {why}"))?;
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its input schema must have `\"type\": \"object\"`".to_owned());
        }
        schema::compile(&input_schema).map_err(|why| format!("its input schema {why}"))?;
        let output_schema = written
            .output_schema
            .map(|text| {
                let schema = schema::read(&text, spent)?;
                schema::compile(&schema).map(|_| schema)
            })
            .transpose()
            .map_err(|why| format!("its output schema {why}"))?;
        let description = printable(written.description.trim());
        Ok(Self {
            name: written.name,
            description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
            input_schema,
            output_schema,
        })
    }
}

/// Describes the tools that the component told, for a plugin of this name. Each belongs to the function that calls it.
pub(crate) fn definitions<'a>(shape: &'a Shape, plugin: &'a str) -> impl Iterator<Item = (ToolDefinition, usize)> + 'a {
    let told = shape.dynamic.iter().flat_map(|dynamic| {
        let tools = dynamic.told.iter().flatten();
        tools.map(|tool| (tool, dynamic.call))
    });
    told.map(move |(tool, call)| {
        let function = &shape.functions[call];
        let id = ToolId::plugin(plugin, function.interface.as_deref(), &tool.name);
        let name = snake_case(&tool.name);
        // What the package says about all of its tools.
        let parts = [Some(&tool.description), function.docs.as_ref()];
        let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let description = match parts.as_slice() {
            [] => format!("`{name}` of `{plugin}`."),
            parts => parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join("\n\n"),
        };
        let mut definition = ToolDefinition::new(id, &*name, description, tool.input_schema.clone())
            .or_named(format!("{}_{name}", snake_case(plugin)));
        if let Some(schema) = &tool.output_schema {
            definition = definition.with_output_schema(schema.clone());
        }
        (definition, call)
    })
}
