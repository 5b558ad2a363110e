//! What a component told about its tools, checked and kept.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::inspect::annotations::DESCRIPTION_CHARS_MAX;
use crate::values::dynamic_export::DiscoveredTool;
use crate::values::guest_schema::{self, Spent};
use toolwit_core::ToolName;
use toolwit_core::text::{printable, snake_case};

/// How many tools one component may tell. A model chooses badly among far fewer.
pub(super) const TOOLS_MAX: usize = 256;

/// A `tool-definition` as it comes out of the guest.
#[derive(Debug, Deserialize)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: String,
    pub(super) output_schema: Option<String>,
}

/// Checks all that a component told, which may take until then. The error says which tool is wrong, and how. Blocks.
pub(super) fn check(written: Vec<Written>, until: Instant) -> Result<Vec<DiscoveredTool>, String> {
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
        told.push(read(tool, &mut spent).map_err(|why| format!("the tool `{name}` cannot be used: {why}"))?);
    }
    Ok(told)
}

fn read(written: Written, spent: &mut Spent) -> Result<DiscoveredTool, String> {
    let input_schema =
        guest_schema::read(&written.input_schema, spent).map_err(|why| format!("its input schema {why}"))?;
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema must have `\"type\": \"object\"`".to_owned());
    }
    guest_schema::compile(&input_schema).map_err(|why| format!("its input schema {why}"))?;
    let output_schema = written
        .output_schema
        .map(|text| {
            let schema = guest_schema::read(&text, spent)?;
            guest_schema::compile(&schema).map(|_| schema)
        })
        .transpose()
        .map_err(|why| format!("its output schema {why}"))?;
    let description = printable(written.description.trim());
    Ok(DiscoveredTool {
        name: written.name,
        description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
        input_schema,
        output_schema,
    })
}
