//! The tools through which a model finds and calls unlisted tools: `search_tools` and `call_tool`.

use serde_json::{Value, json};

use super::catalog::{Catalog, CatalogTool};
use crate::principal::Principal;
use toolwit::registry::Query;
use toolwit::strategy::search_tools_definition;
use toolwit::tool::{ToolId, ToolResult};
use toolwit::{Arguments, ToolDefinition};

/// The name of the tool that calls another tool by name.
pub(super) const CALL_TOOL: &str = "call_tool";

/// The note with which a result explains to the model how to call a described tool.
const CALL_NOTE: &str = "use `call_tool` to call the tool that fits";

/// Maximum number of tools that a search returns.
const HITS_MAX: usize = 8;

/// Returns the definition of `search_tools`.
pub(super) fn search_tools() -> ToolDefinition {
    search_tools_definition("Finds tools for a capability. Use `call_tool` to call a tool that was found.")
}

/// Returns the definition of `call_tool`.
pub(super) fn call_tool() -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool."},
            "arguments": {"type": "object", "description": "The arguments, which fit the tool's `input_schema`."},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description = "Calls a tool that a search or another tool described, and that is not in the list of tools.";
    ToolDefinition::new(ToolId::host(CALL_TOOL), CALL_TOOL, description, schema)
}

/// Returns the definition of `call_tool` for clients with sessions.
pub(super) fn call_tool_in_session() -> ToolDefinition {
    let mut definition = call_tool();
    let description = "Calls a tool that is not in the list of tools, such as a method of an entity that an earlier call returned. \
                       `arguments` then also contains the `handle` of the entity, under the name of its `type`: \
                       `{\"name\": \"cart_c1_count\", \"arguments\": {\"cart\": \"cart_…\"}}`.";
    description.clone_into(&mut definition.description);
    definition
}

/// Searches the tools of a principal.
pub(super) fn search(catalog: &Catalog, principal: &Principal, arguments: &Arguments) -> ToolResult {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let Some(need) = text("need").or_else(|| text("query")) else {
        return ToolResult::error("`need` must describe the tool: `a tool that …`");
    };
    let query = Query::new(need).with_task(text("task").unwrap_or_default());
    let hits = catalog.packages.search(&query, |id| principal.may_use(id));
    let mut names: Vec<&str> = Vec::new();
    let mut found_tools = Vec::new();
    for hit in hits {
        let inner_id = hit.leads_to.as_ref().map(|inner| inner.id.as_str());
        for tool in [Some(hit.id.as_str()), inner_id]
            .into_iter()
            .flatten()
            .filter_map(|id| catalog.by_id(id))
        {
            if !names.contains(&tool.name.as_str()) && found_tools.len() < HITS_MAX {
                names.push(&tool.name);
                found_tools.push(describe(tool));
            }
        }
    }
    let note = if found_tools.is_empty() {
        "no tool fits; do without, or search with other words"
    } else {
        CALL_NOTE
    };
    ToolResult::value(json!({"hits": found_tools, "note": note}))
}

/// Describes the tools behind a facade.
pub(super) fn describe_facade_tools(catalog: &Catalog, names: &[String]) -> ToolResult {
    let tools: Vec<_> = names
        .iter()
        .filter_map(|name| catalog.tool(name))
        .map(describe)
        .collect();
    ToolResult::value(json!({"tools": tools, "note": CALL_NOTE}))
}

/// Returns the name and the arguments of the tool that a call of `call_tool` runs. The arguments may be JSON in a
/// string.
///
/// # Errors
/// A message for the model, if the name is missing or not a string, or the arguments are not an object.
pub(super) fn parse_call_arguments(mut arguments: Arguments) -> Result<(String, Arguments), String> {
    let Some(Value::String(name)) = arguments.remove("name") else {
        return Err("/name: it must be the name of a tool".to_owned());
    };
    let tool_arguments = match arguments.remove("arguments") {
        None | Some(Value::Null) => Arguments::new(),
        Some(Value::Object(object)) => object,
        Some(Value::String(text)) => {
            let parsed = toolwit::tool::parse_arguments(&text);
            parsed
                .map_err(|error| format!("/arguments: {}", error.report()))?
                .arguments
        }
        Some(_) => return Err("/arguments: it must be an object".to_owned()),
    };
    Ok((name, tool_arguments))
}

fn describe(tool: &CatalogTool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.definition.description,
        "input_schema": tool.definition.input_schema,
    })
}
