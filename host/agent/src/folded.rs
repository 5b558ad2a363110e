//! Tools that are known and inside a facade that is closed.

use std::sync::Arc;

use super::prepare::shown;
use crate::injection::FACADE_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolSet};

/// Finds the facades to call, one after the other, to come to a tool of this name.
pub(super) fn path_to(wanted: &str, tools: &ToolSet) -> Option<Vec<String>> {
    let paths = tools.iter().filter_map(|tool| {
        let mut path = vec![tool.name.to_string()];
        leads_to(wanted, &tool.tool, &mut path).then_some(path)
    });
    paths.min_by_key(Vec::len)
}

fn leads_to(wanted: &str, facade: &Arc<dyn Tool>, path: &mut Vec<String>) -> bool {
    let Some(behind) = facade.facade() else {
        return false;
    };
    if path.len() > FACADE_DEPTH_MAX {
        return false;
    }
    if behind.folded().iter().any(|tool| tool.definition().name() == wanted) {
        return true;
    }
    behind.folded().iter().any(|tool| {
        path.push(tool.definition().name().to_owned());
        let found = leads_to(wanted, tool, path);
        if !found {
            path.pop();
        }
        found
    })
}

/// Refuses a name whose tool is inside a facade.
pub(super) fn folded_tool(name: &str, path: &[String]) -> Error {
    let name = shown(name);
    let facades: Vec<_> = path.iter().map(|facade| format!("`{facade}`")).collect();
    let outermost = facades.first().map_or("it", String::as_str);
    let message = format!("`{name}` is inside {outermost}, which is not open");
    Error::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
        .with_suggestion(format!("call {} first, then `{name}`", facades.join(", then ")))
}
