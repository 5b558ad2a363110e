//! Derives the tools that the model sees from the events.

use std::collections::HashSet;

use indexmap::IndexSet;

use super::Event;
use toolwit_core::ToolName;

/// Returns the tools that the model sees after these events, in order: the declared tools and, with the delivery `gateway`, the
/// tools that a message describes.
#[must_use]
pub fn visible_tools<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<ToolName> {
    let mut visible: IndexSet<&ToolName> = IndexSet::new();
    for event in events {
        match event {
            Event::TurnStarted { tools, .. } => visible = tools.iter().collect(),
            Event::ToolsInjected { names, .. } | Event::ToolsRestored { names } => visible.extend(names),
            Event::ToolsEvicted { names } | Event::ToolsFolded { names } => {
                let hidden: HashSet<_> = names.iter().collect();
                visible.retain(|name| !hidden.contains(*name));
            }
            Event::RunResumed { added, removed, .. } => {
                visible.retain(|name| !removed.contains(*name));
                visible.extend(added);
            }
            // Removed tools stay declared until the next turn.
            _ => {}
        }
    }
    visible.into_iter().cloned().collect()
}
