//! Search for tools inside closed facades.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{Tool, ToolSet};

/// Returns the names of the facades to call, outermost first, until the tool `wanted` is visible. This is the shortest
/// path with at most [`FACADE_DEPTH_MAX`] facades. Returns `None` if no such path exists.
pub(crate) fn facade_path(wanted: &str, tools: &ToolSet) -> Option<Vec<String>> {
    let outermost = tools
        .iter()
        .filter_map(|tool| Some((inner_tools(&tool.tool)?, vec![tool.name.to_string()])));
    // The search is breadth-first, so the first path that it finds is the shortest.
    let mut pending: VecDeque<_> = outermost.collect();
    let mut visited = HashSet::new();
    while let Some((inner, path)) = pending.pop_front() {
        // A facade may be inside several others. It is searched once.
        if !visited.insert(inner.as_ptr()) {
            continue;
        }
        if inner.iter().any(|tool| tool.definition().name() == wanted) {
            return Some(path);
        }
        if path.len() == FACADE_DEPTH_MAX {
            continue;
        }
        pending.extend(inner.iter().filter_map(|tool| {
            let name = tool.definition().name().to_owned();
            let path: Vec<_> = path.iter().cloned().chain([name]).collect();
            Some((inner_tools(tool)?, path))
        }));
    }
    None
}

/// Returns the tools inside a facade, or `None` if the tool is not a facade.
fn inner_tools(tool: &Arc<dyn Tool>) -> Option<&[Arc<dyn Tool>]> {
    tool.facade().map(|facade| facade.fixed_tools())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::injection::Facade;
    use toolwit_core::{NativeTool, ToolResult};

    fn tool(name: &str) -> Arc<dyn Tool> {
        let tool = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text(""))
        });
        Arc::new(tool.unwrap())
    }

    fn facade(name: &str, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Arc<dyn Tool> {
        Arc::new(Facade::builder(name, "Has tools.").tools(tools).build().unwrap())
    }

    fn path(wanted: &str, tool: Arc<dyn Tool>) -> Option<Vec<String>> {
        let mut set = ToolSet::new();
        set.add(tool);
        facade_path(wanted, &set)
    }

    #[test]
    fn the_path_to_a_tool_is_the_shortest_path() {
        let deep = facade("a", [facade("b", [tool("x")])]);
        let shallow = facade("c", [tool("x")]);
        let outer = facade("f", [deep, shallow]);
        assert_eq!(path("x", outer.clone()).unwrap(), ["f", "c"]);
        assert_eq!(path("c", outer.clone()).unwrap(), ["f"]);
        assert_eq!(path("y", outer), None);
    }

    #[test]
    fn a_tool_is_found_up_to_the_depth_limit() {
        let nested =
            |depth: usize| (0..depth).fold(tool("x"), |inner, level| facade(&format!("level_{level}"), [inner]));
        assert_eq!(path("x", nested(FACADE_DEPTH_MAX)).unwrap().len(), FACADE_DEPTH_MAX);
        assert_eq!(path("x", nested(FACADE_DEPTH_MAX + 1)), None);
    }
}
