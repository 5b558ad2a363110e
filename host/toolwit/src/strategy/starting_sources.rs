//! A strategy that tells the model which sources, such as servers, are still starting.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::json;

use toolwit_agent::ToolSource;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::{Arguments, EffectClass, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// The name of the tool that waits for the sources.
const WAIT_FOR_SERVERS: &str = "wait_for_servers";

/// Offers a tool that waits for the sources that are still starting, so that the model neither gives up nor does without
/// their tools. The tool is offered only while a source starts. Another strategy, such as
/// [`ToolSources`](super::ToolSources), adds the tools of the sources.
pub(crate) struct StartingSources(Vec<Arc<dyn ToolSource>>);

impl StartingSources {
    pub(crate) fn new(sources: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Self {
        Self(sources.into_iter().collect())
    }

    fn starting(&self, context: &ToolContext) -> Vec<Arc<dyn ToolSource>> {
        let is_starting = |source: &&Arc<dyn ToolSource>| source.is_starting(context);
        self.0.iter().filter(is_starting).cloned().collect()
    }
}

#[async_trait]
impl InjectionStrategy for StartingSources {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let view = context.view();
        let is_offered = view.tools().by_id(&tool_id()).is_some();
        if is_offered && self.starting(view.context()).is_empty() {
            return Injection::remove(vec![tool_id()]);
        }
        Injection::none()
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let starting = self.starting(turn.context());
        if !starting.is_empty() {
            return Injection::add(vec![Arc::new(WaitForServers::new(starting))]);
        }
        if turn.tools().by_id(&tool_id()).is_some() {
            return Injection::remove(vec![tool_id()]);
        }
        Injection::none()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        (*tool == tool_id()).then(|| Arc::new(WaitForServers::new(Vec::new())) as Arc<dyn Tool>)
    }
}

fn tool_id() -> ToolId {
    ToolId::host(WAIT_FOR_SERVERS)
}

/// The tool that waits for sources.
struct WaitForServers {
    sources: Vec<Arc<dyn ToolSource>>,
    definition: ToolDefinition,
}

impl WaitForServers {
    fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        let description = format!(
            "Waits for servers that are still starting, and adds their tools: {}. Call it if you need one of these tools.",
            quoted_names(&sources)
        );
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let definition = ToolDefinition::new(tool_id(), WAIT_FOR_SERVERS, description, schema);
        Self {
            sources,
            definition: definition.with_effect(EffectClass::Read),
        }
    }
}

#[async_trait]
impl Tool for WaitForServers {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Waits until each source has started or failed. A source limits the time of its own start.
    async fn call(&self, _arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let wait = |source: &Arc<dyn ToolSource>| {
            let source = source.clone();
            async move {
                match source.tools(context).await {
                    Ok(_) => format!("`{}` is ready", source.name()),
                    Err(error) => error.message.clone(),
                }
            }
        };
        let outcomes = join_all(self.sources.iter().map(wait));
        tokio::select! {
            outcomes = outcomes => Ok(ToolResult::text(outcomes.join("\n"))),
            () = context.cancel_token().cancelled() => Ok(ToolResult::error("the call was cancelled")),
        }
    }
}

/// Returns the names of sources for a text: `` `a`, `b` ``.
pub(in crate::strategy) fn quoted_names(sources: &[Arc<dyn ToolSource>]) -> String {
    let names: Vec<_> = sources.iter().map(|source| format!("`{}`", source.name())).collect();
    names.join(", ")
}
