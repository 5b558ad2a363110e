//! Finding a tool by a name that a person typed.

use std::sync::Arc;

use super::Toolwit;
use toolwit_core::{Error, ErrorKind, Phase, Tool, ToolLookup, ToolSet};

/// The maximum number of ids in the error about an ambiguous name.
const IDS_SHOWN_MAX: usize = 8;

impl Toolwit {
    /// Finds a tool by its id, or by its name if only one tool has this name.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] with the nearest names, [`ErrorKind::AmbiguousTool`] with the ids to choose from.
    pub fn find_tool(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
        if let Some(tool) = tools.iter().find(|tool| tool.definition().id.as_str() == wanted) {
            return Ok(tool.clone());
        }
        let named: Vec<_> = tools.iter().filter(|tool| tool.definition().name() == wanted).collect();
        match named.as_slice() {
            [tool] => Ok(Arc::clone(tool)),
            [] => find_by_assigned_name(tools, wanted),
            several => {
                let shown = several.iter().take(IDS_SHOWN_MAX);
                let ids: Vec<_> = shown.map(|tool| format!("`{}`", tool.definition().id)).collect();
                let more = match several.len() - ids.len() {
                    0 => String::new(),
                    hidden => format!(", and {hidden} more"),
                };
                let message = format!("{} tools have the name `{wanted}`", several.len());
                Err(Error::new(ErrorKind::AmbiguousTool, Phase::Validate, message)
                    .with_suggestion(format!("call one by its id: {}{more}", ids.join(", "))))
            }
        }
    }
}

/// Finds a tool by the name that a tool set of all these tools assigns to it.
fn find_by_assigned_name(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
    let mut set = ToolSet::new();
    for tool in tools {
        set.add(tool.clone());
    }
    if let ToolLookup::Found(named) = set.look_up(wanted) {
        return Ok(named.tool);
    }
    let message = format!("there is no tool `{wanted}`");
    let error = Error::new(ErrorKind::UnknownTool, Phase::Validate, message);
    let nearest: Vec<_> = set.nearest(wanted).iter().map(|name| format!("`{name}`")).collect();
    Err(if nearest.is_empty() {
        error
    } else {
        error.with_suggestion(format!("did you mean {}?", nearest.join(" or ")))
    })
}
