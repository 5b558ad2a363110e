//! The tool that tells what the tools of a facade have in common.

use std::sync::Arc;

use serde_json::{Value, json};

use toolwit_core::Error;
use toolwit_core::{NativeTool, Tool, ToolDefinition, ToolId, ToolName, ToolResult};

/// A tool of an open facade, under the name that it was given.
pub(in crate::injection) struct Described {
    pub(in crate::injection) name: ToolName,
    pub(in crate::injection) definition: ToolDefinition,
}

/// Makes `<facade>_context`: why these tools belong together, all details of each, and how to use them.
///
/// # Errors
/// None in practice: its schema is fixed.
pub(in crate::injection) fn context_tool(
    id: ToolId,
    facade: &ToolName,
    about: &str,
    tools: &[Described],
    usage_notes: Option<&str>,
) -> Result<Arc<dyn Tool>, Error> {
    let names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let notes = usage_notes.map(|notes| format!(" {notes}")).unwrap_or_default();
    let description = format!(
        "Gives all details of the tools of `{facade}`: {}. {about}{notes}",
        names.join(", ")
    );
    let schema = json!({"type": "object", "properties": {}});
    let definition = ToolDefinition::new(id, format!("{facade}_context"), description, schema);
    let told = told(about, tools, usage_notes);
    let tool = NativeTool::from_definition(definition, move |_, _| {
        let told = told.clone();
        async move { Ok(ToolResult::value(told)) }
    })?;
    Ok(Arc::new(tool))
}

fn told(about: &str, tools: &[Described], usage_notes: Option<&str>) -> Value {
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.definition.description,
                "input_schema": *tool.definition.input_schema,
            })
        })
        .collect();
    let mut told = json!({"about": about, "tools": tools});
    if let Some(notes) = usage_notes {
        told["usage_notes"] = json!(notes);
    }
    told
}
