//! The tool that describes the tools of a facade.

use std::sync::Arc;

use serde_json::{Value, json};

use toolwit_core::Error;
use toolwit_core::{EffectClass, NativeTool, Tool, ToolDefinition, ToolId, ToolName, ToolResult};

/// The assigned name and the definition of a tool that a facade has revealed.
pub(in crate::injection) struct ToolDescription {
    pub(in crate::injection) name: ToolName,
    pub(in crate::injection) definition: ToolDefinition,
}

/// Creates `<facade>_context`: a tool that returns the facade's description, the definitions of its tools and the usage
/// notes.
///
/// # Errors
/// As [`NativeTool::from_definition`]. It does not fail in practice, since the schema is fixed.
pub(in crate::injection) fn context_tool(
    id: ToolId,
    facade_name: &ToolName,
    facade_description: &str,
    tools: &[ToolDescription],
    usage_notes: Option<&str>,
) -> Result<Arc<dyn Tool>, Error> {
    let notes = usage_notes.map(|notes| format!(" {notes}")).unwrap_or_default();
    // The description does not list the tools, so that it stays the same when the facade reveals more.
    let description =
        format!("Returns all details of the tools that `{facade_name}` has revealed. {facade_description}{notes}");
    let schema = json!({"type": "object", "properties": {}});
    let definition =
        ToolDefinition::new(id, format!("{facade_name}_context"), description, schema).with_effect(EffectClass::Read);
    let details = context_details(facade_description, tools, usage_notes);
    let tool = NativeTool::from_definition(definition, move |_, _| {
        let details = details.clone();
        async move { Ok(ToolResult::value(details)) }
    })?;
    Ok(Arc::new(tool))
}

fn context_details(facade_description: &str, tools: &[ToolDescription], usage_notes: Option<&str>) -> Value {
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
    let mut details = json!({"about": facade_description, "tools": tools});
    if let Some(notes) = usage_notes {
        details["usage_notes"] = json!(notes);
    }
    details
}
