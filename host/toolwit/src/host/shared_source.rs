//! A source of all conversations, restricted to the tools that one conversation may use.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_agent::ToolSource;
use toolwit_core::{Error, Tool, ToolContext};

/// The tools of a shared source that one conversation may use.
#[derive(Clone)]
pub(super) struct SharedSource {
    source: Arc<dyn ToolSource>,
    may_use: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl SharedSource {
    pub(super) fn new(source: Arc<dyn ToolSource>, may_use: Arc<dyn Fn(&str) -> bool + Send + Sync>) -> Self {
        Self { source, may_use }
    }

    /// Returns those of the tools that the conversation may use.
    fn usable(&self, mut tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        tools.retain(|tool| (self.may_use)(tool.definition().id.as_str()));
        tools
    }
}

#[async_trait]
impl ToolSource for SharedSource {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn listed_names(&self) -> Option<Vec<String>> {
        // Not restricted, because `may_use` decides by id and the list also has names. The list only selects which
        // sources are queried; the tools themselves are restricted.
        self.source.listed_names()
    }

    fn cached_tools(&self, context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        self.source.cached_tools(context).map(|tools| self.usable(tools))
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.source.tools(context).await.map(|tools| self.usable(tools))
    }
}
