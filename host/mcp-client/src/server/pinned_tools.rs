//! The pinned definition of each tool: the definition that was listed first, or that was accepted last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::config::ChangedTools;
use crate::session::{ListedTool, Listing};
use toolwit_core::Tool;
use toolwit_core::limits::MCP_TOOLS_MAX;

/// The tools of a server for one caller. A tool whose definition does not change stays the same object. By default, a
/// tool whose definition changes is withheld, because the user approved only the pinned definition.
#[derive(Default)]
pub(super) struct PinnedTools {
    /// The digest of the pinned definition of each tool, by the tool's name at the server. Empty if changed
    /// definitions are followed.
    pins: BTreeMap<String, String>,
    /// The usable tools of the last list, by the digests of their definitions.
    tools: HashMap<String, Arc<dyn Tool>>,
    /// The names of the usable tools of the last list. [`Self::drop_tools`] keeps them.
    usable_names: HashSet<String>,
    /// The names of the tools of the last list that are withheld because their definitions have changed.
    changed_names: Vec<String>,
    /// The names of the tools of the last list that are withheld because too many others are pinned.
    surplus_names: Vec<String>,
}

impl PinnedTools {
    /// Pins the new tools of a list, unless the policy is to follow changes. Returns the tools that can be used. `create`
    /// creates a tool if no tool with the same definition exists.
    pub(super) fn admit(
        &mut self,
        listing: &Listing,
        policy: ChangedTools,
        create: impl Fn(&ListedTool) -> Arc<dyn Tool>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut previous_tools = std::mem::take(&mut self.tools);
        self.usable_names.clear();
        let previously_changed = std::mem::take(&mut self.changed_names);
        let had_surplus = !std::mem::take(&mut self.surplus_names).is_empty();
        let mut tools = Vec::with_capacity(listing.tools.len());
        for listed in &listing.tools {
            let digest = listed.definition.digest();
            if policy == ChangedTools::Withhold {
                match self.pins.get(&listed.name) {
                    Some(pin) if *pin == digest => {}
                    Some(_) => {
                        if !previously_changed.contains(&listed.name) {
                            tracing::warn!(tool = %listed.definition.id, "the definition of a tool has changed; it is withheld");
                        }
                        self.changed_names.push(listed.name.clone());
                        continue;
                    }
                    None if self.pins.len() < MCP_TOOLS_MAX => {
                        self.pins.insert(listed.name.clone(), digest.clone());
                    }
                    None => {
                        self.surplus_names.push(listed.name.clone());
                        continue;
                    }
                }
            }
            let tool = previous_tools.remove(&digest).unwrap_or_else(|| create(listed));
            self.tools.insert(digest, tool.clone());
            self.usable_names.insert(listed.name.clone());
            tools.push(tool);
        }
        if !had_surplus && !self.surplus_names.is_empty() {
            tracing::warn!(
                tools = self.surplus_names.len(),
                "new tools of an MCP server are withheld, because it listed too many others"
            );
        }
        tools
    }

    /// Returns the names of the tools that are withheld because their definitions have changed.
    pub(super) fn changed_names(&self) -> &[String] {
        &self.changed_names
    }

    /// Returns the names of the tools that are withheld because too many others are pinned.
    pub(super) fn surplus_names(&self) -> &[String] {
        &self.surplus_names
    }

    /// Accepts the changed definitions: the next list pins them. If tools are withheld because too many others are
    /// pinned, the pins of tools that were not usable in the last list are removed.
    pub(super) fn accept_changes(&mut self) {
        for name in self.changed_names.drain(..) {
            self.pins.remove(&name);
        }
        if !self.surplus_names.is_empty() {
            self.pins.retain(|name, _| self.usable_names.contains(name));
        }
    }

    /// Drops the tools, but keeps their pins and their names.
    pub(super) fn drop_tools(&mut self) {
        self.tools = HashMap::new();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use toolwit_core::{NativeTool, ToolDefinition, ToolId, ToolResult};

    use super::*;

    fn listing(tools: impl IntoIterator<Item = (String, &'static str)>) -> Listing {
        let tools = tools.into_iter().map(|(name, description)| {
            let id = ToolId::from_text(&format!("mcp:shop#{name}"));
            let definition = ToolDefinition::new(id, name.as_str(), description, json!({"type": "object"}));
            ListedTool {
                name,
                definition,
                requires_task: false,
            }
        });
        Listing::from_tools(tools.collect())
    }

    fn create(listed: &ListedTool) -> Arc<dyn Tool> {
        let definition = listed.definition.clone();
        let tool = NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("")) });
        Arc::new(tool.unwrap())
    }

    // attack: G9
    #[test]
    fn pins_are_limited_and_outlive_the_tools() {
        let mut pinned = PinnedTools::default();
        let usable_count = |pinned: &mut PinnedTools, names: std::ops::Range<usize>, description| {
            let listing = listing(names.map(|name| (name.to_string(), description)));
            pinned.admit(&listing, ChangedTools::Withhold, create).len()
        };
        assert_eq!(usable_count(&mut pinned, 0..MCP_TOOLS_MAX, "First."), MCP_TOOLS_MAX);
        assert_eq!(
            usable_count(&mut pinned, MCP_TOOLS_MAX..MCP_TOOLS_MAX + 2, "First."),
            0,
            "new names"
        );
        assert_eq!((pinned.pins.len(), pinned.surplus_names().len()), (MCP_TOOLS_MAX, 2));
        pinned.drop_tools();
        assert_eq!(usable_count(&mut pinned, 0..3, "Second."), 0);
        assert_eq!(pinned.changed_names(), ["0", "1", "2"]);
        assert_eq!(usable_count(&mut pinned, 0..3, "First."), 3);

        usable_count(&mut pinned, MCP_TOOLS_MAX..MCP_TOOLS_MAX + 2, "First.");
        pinned.accept_changes();
        assert_eq!(usable_count(&mut pinned, MCP_TOOLS_MAX..MCP_TOOLS_MAX + 2, "First."), 2);
        assert_eq!(pinned.pins.len(), 2);
    }

    // attack: G9
    #[test]
    fn accepting_changes_without_tools_keeps_the_pins_of_usable_tools() {
        let mut pinned = PinnedTools::default();
        let name = |number: usize| number.to_string();
        let first = listing((0..MCP_TOOLS_MAX).map(|number| (name(number), "First.")));
        pinned.admit(&first, ChangedTools::Withhold, create);
        let usable_and_surplus = listing([(name(0), "First."), (name(MCP_TOOLS_MAX), "First.")]);
        pinned.admit(&usable_and_surplus, ChangedTools::Withhold, create);
        assert_eq!(pinned.surplus_names(), [name(MCP_TOOLS_MAX)]);

        pinned.drop_tools();
        pinned.accept_changes();
        assert_eq!(pinned.pins.len(), 1, "the pin of the usable tool is kept");
        let changed = listing([(name(0), "Second."), (name(MCP_TOOLS_MAX), "First.")]);
        assert_eq!(pinned.admit(&changed, ChangedTools::Withhold, create).len(), 1);
        assert_eq!(pinned.changed_names(), ["0"]);
    }
}
