//! Search for tools inside closed facades.

use std::sync::Arc;

use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{Tool, ToolSet};

/// Returns a sequence of facades to call until a tool of this name is visible, or `None` if no facade contains the tool. From
/// each outermost facade, the search takes the first sequence that it finds, and returns the shortest of these.
pub(crate) fn facade_path(wanted: &str, tools: &ToolSet) -> Option<Vec<String>> {
    let paths = tools.iter().filter_map(|tool| {
        let mut path = vec![tool.name.to_string()];
        contains(&tool.tool, wanted, &mut path).then_some(path)
    });
    paths.min_by_key(Vec::len)
}

/// Returns whether a facade contains the tool, at most [`FACADE_DEPTH_MAX`] facades deep. If so, extends `path` by the facades
/// in between.
fn contains(facade: &Arc<dyn Tool>, wanted: &str, path: &mut Vec<String>) -> bool {
    let Some(content) = facade.facade() else {
        return false;
    };
    if path.len() > FACADE_DEPTH_MAX {
        return false;
    }
    if content
        .fixed_tools()
        .iter()
        .any(|tool| tool.definition().name() == wanted)
    {
        return true;
    }
    content.fixed_tools().iter().any(|tool| {
        path.push(tool.definition().name().to_owned());
        let is_inside = contains(tool, wanted, path);
        if !is_inside {
            path.pop();
        }
        is_inside
    })
}
