//! The declared tools as a function of the events.

use super::Event;
use toolwit_core::ToolName;

/// Returns the tools that are declared to the model after these events, in order.
///
/// The result depends only on the events.
#[must_use]
pub fn visible_tools<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<ToolName> {
    let mut visible: Vec<ToolName> = Vec::new();
    for event in events {
        match event {
            Event::TurnStarted { tools, .. } => visible.clone_from(tools),
            Event::ToolsInjected { names, .. } | Event::ToolsRestored { names } => {
                let new: Vec<_> = names.iter().filter(|name| !visible.contains(name)).cloned().collect();
                visible.extend(new);
            }
            Event::ToolsEvicted { names } | Event::ToolsFolded { names } => {
                visible.retain(|name| !names.contains(name))
            }
            _ => {}
        }
    }
    visible
}
