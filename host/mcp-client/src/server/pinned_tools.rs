//! The definitions with which tools were first listed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::config::ChangedTools;
use crate::session::{ListedTool, Listing};
use toolwit_core::Tool;

/// The tools of a server for one caller. A definition that does not change stays the same object, and one that changes is not trusted like
/// the one before it: the approval of the tool was for another description.
#[derive(Default)]
pub(super) struct PinnedTools {
    /// The digest of the definition of each tool, by its name at the server.
    pins: BTreeMap<String, String>,
    /// The tools, by the digests of their definitions.
    tools: HashMap<String, Arc<dyn Tool>>,
    /// The tools whose definitions have changed.
    changed: Vec<String>,
}

impl PinnedTools {
    /// Returns the tools of a list that can be used.
    pub(super) fn tools(
        &mut self,
        listing: &Listing,
        policy: ChangedTools,
        create: impl Fn(&ListedTool) -> Arc<dyn Tool>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut known = std::mem::take(&mut self.tools);
        let changed = std::mem::take(&mut self.changed);
        let mut tools = Vec::with_capacity(listing.tools.len());
        for listed in &listing.tools {
            let digest = listed.definition.digest();
            let pin = self.pins.entry(listed.name.clone()).or_insert_with(|| digest.clone());
            if *pin != digest {
                if policy == ChangedTools::Withhold {
                    if !changed.contains(&listed.name) {
                        tracing::warn!(tool = %listed.definition.id, "the definition of a tool has changed; it is withheld");
                    }
                    self.changed.push(listed.name.clone());
                    continue;
                }
                pin.clone_from(&digest);
            }
            let tool = known.remove(&digest).unwrap_or_else(|| create(listed));
            self.tools.insert(digest, tool.clone());
            tools.push(tool);
        }
        tools
    }

    /// Returns the names of the tools whose definitions have changed.
    pub(super) fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Trusts the current definitions.
    pub(super) fn accept_changes(&mut self) {
        for name in self.changed.drain(..) {
            self.pins.remove(&name);
        }
    }
}
