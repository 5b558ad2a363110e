//! A shared source, restricted to the tools that one conversation may use.

use std::sync::Arc;

use async_trait::async_trait;

use super::MayUse;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, Tool, ToolContext, ToolId};

/// The tools of a shared source that one conversation may use.
#[derive(Clone)]
pub(super) struct RestrictedSource {
    source: Arc<dyn ToolSource>,
    may_use: MayUse,
}

impl RestrictedSource {
    pub(super) fn new(source: Arc<dyn ToolSource>, may_use: MayUse) -> Self {
        Self { source, may_use }
    }

    /// Keeps only the tools that the conversation may use.
    fn usable_tools(&self, mut tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        tools.retain(|tool| (self.may_use)(tool.definition().id.as_str()));
        tools
    }
}

#[async_trait]
impl ToolSource for RestrictedSource {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn listed_names(&self) -> Option<Vec<String>> {
        // Returns all names. `may_use` cannot filter them, because it decides by id and the list also has names. The list
        // only selects which sources are queried; `tools` is restricted.
        self.source.listed_names()
    }

    fn may_have(&self, tool: &ToolId) -> bool {
        (self.may_use)(tool.as_str()) && self.source.may_have(tool)
    }

    fn cached_tools(&self, context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        self.source.cached_tools(context).map(|tools| self.usable_tools(tools))
    }

    fn is_starting(&self, context: &ToolContext) -> bool {
        self.source.is_starting(context)
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.source.tools(context).await.map(|tools| self.usable_tools(tools))
    }
}
