//! The plugins of a host, as a source of tools for tool groups.

use std::sync::Arc;

use async_trait::async_trait;

use super::MayUse;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, Tool, ToolContext};
use toolwit_registry::LiveRegistry;
use toolwit_sandbox::Scope;

/// The name of the source of all plugins, which is their provider in tool groups.
pub const PLUGIN_SOURCE: &str = "plugins";

/// The tools of plugins that one conversation may use.
pub(super) struct PluginSource {
    registry: LiveRegistry,
    scope: Scope,
    may_use: MayUse,
}

impl PluginSource {
    pub(super) fn new(registry: LiveRegistry, scope: Scope, may_use: MayUse) -> Self {
        Self {
            registry,
            scope,
            may_use,
        }
    }

    fn usable_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.registry.current().tools(&self.scope);
        tools.retain(|tool| (self.may_use)(tool.definition().id.as_str()));
        tools
    }
}

#[async_trait]
impl ToolSource for PluginSource {
    fn name(&self) -> &str {
        PLUGIN_SOURCE
    }

    fn listed_names(&self) -> Option<Vec<String>> {
        let tools = self.usable_tools();
        let definitions = tools.iter().map(|tool| tool.definition());
        let names = definitions.flat_map(|definition| [definition.name().to_owned(), definition.id.to_string()]);
        Some(names.collect())
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        Ok(self.usable_tools())
    }
}
