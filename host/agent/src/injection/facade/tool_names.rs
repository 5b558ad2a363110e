//! Writes the names of a facade's tools into its result.

use serde_json::json;

use toolwit_core::{AVAILABLE_TOOLS, ToolId, ToolResult, ToolSet};

/// Writes the names of the tools with the ids `listed_ids` into the result of a facade. Call this function after these tools were
/// added to `tools`, which assigns the names. `withheld` is the reason why the facade itself reveals nothing, if there is one.
pub(crate) fn write_facade_tool_names(
    result: &mut ToolResult,
    listed_ids: &[ToolId],
    withheld: Option<&str>,
    tools: &ToolSet,
) {
    if result.revealed_tools.is_none() {
        return;
    }
    let listed_tools = listed_ids.iter().filter_map(|id| tools.by_id(id));
    let names: Vec<_> = listed_tools.map(|tool| &tool.name).collect();
    result.rewrite_value(|value| {
        let Some(list) = value.get_mut(AVAILABLE_TOOLS) else {
            return false;
        };
        *list = json!(names);
        if names.is_empty() && value.get("note").is_some() {
            value["note"] = json!(match withheld {
                Some(reason) => format!("its tools cannot be used: {reason}"),
                None => "its tools cannot be used in this conversation".to_owned(),
            });
        }
        true
    });
}
