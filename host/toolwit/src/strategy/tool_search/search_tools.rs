//! The tool `search_tools`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{FoundTool, SharedSearch, lock};
use crate::strategy::starting_sources::quoted_names;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{CallableTools, SEARCH_TOOLS};
use toolwit_core::{Arguments, EffectClass, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};
use toolwit_registry::Query;

/// The accepted names of the parameter for the needed capability. `need` is declared; some models write `query` instead.
const NEED_NAMES: [&str; 2] = ["need", "query"];

/// The description of `search_tools` in a conversation, to which the found tools are added.
const DESCRIPTION: &str =
    "Finds tools for a capability that none of your tools has. What is found becomes one of your tools.";

/// Returns the definition of `search_tools` in a conversation.
pub(super) fn definition() -> ToolDefinition {
    search_tools_definition(DESCRIPTION)
}

/// Returns the definition of `search_tools` with a description for the model. The description must explain how to call a
/// found tool.
#[must_use]
pub fn search_tools_definition(description: &str) -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "need": {
                "type": "string",
                "description": "The capability that you need, as a description of the tool: `a tool that converts currencies`.",
            },
            "task": {
                "type": "string",
                "description": "What the user wants to achieve, in a few words.",
            },
        },
        "required": ["need"],
        "additionalProperties": false,
    });
    ToolDefinition::new(ToolId::host(SEARCH_TOOLS), SEARCH_TOOLS, description, schema).with_effect(EffectClass::Read)
}

/// The tool `search_tools`.
pub(super) struct SearchTools {
    shared: Arc<SharedSearch>,
}

impl SearchTools {
    pub(super) fn new(shared: Arc<SharedSearch>) -> Self {
        Self { shared }
    }
}

#[async_trait]
impl Tool for SearchTools {
    fn definition(&self) -> &ToolDefinition {
        &self.shared.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let text_argument = |name: &str| arguments.get(name).and_then(Value::as_str);
        let Some(need) = NEED_NAMES.into_iter().find_map(text_argument) else {
            return Ok(ToolResult::error("`need` must describe the tool: `a tool that …`"));
        };
        if let Some(tools) = CallableTools::of(context) {
            self.shared.update_conversation_tools(tools);
        }
        let query = Query::new(need).with_task(text_argument("task").unwrap_or_default());
        let earlier_result = lock(&self.shared.earlier_searches).result(&query);
        let (found, was_found_before) = match earlier_result {
            Some(found) => (found, true),
            None => {
                let found = self.shared.find(query.clone(), context).await;
                let is_complete = self.shared.starting_sources(context).is_empty();
                let mut earlier_searches = lock(&self.shared.earlier_searches);
                let was_found_before = earlier_searches.has_found(&found);
                if is_complete {
                    earlier_searches.store(&query, found.clone());
                } else {
                    earlier_searches.add_found_ids(found.iter().map(|tool| tool.hit.id.as_str()));
                }
                (found, was_found_before)
            }
        };
        let starting = self.shared.starting_sources(context);
        let note = match (found.is_empty(), was_found_before) {
            (true, _) if !starting.is_empty() => "no tool fits yet".to_owned(),
            (true, _) => "no tool fits; do without, or search with other words".to_owned(),
            // The earlier search may have been the automatic one, or one with other words.
            (false, true) => {
                "an earlier search found these tools, and they are your tools: call the one that fits".to_owned()
            }
            (false, false) => "these are your tools now: call the one that fits".to_owned(),
        };
        let note = if starting.is_empty() {
            note
        } else {
            format!(
                "{note}; these servers are still starting, search again for their tools: {}",
                quoted_names(&starting)
            )
        };
        let hits: Vec<_> = found.iter().map(FoundTool::to_json).collect();
        Ok(ToolResult::value(json!({"hits": hits, "note": note})))
    }
}

impl SharedSearch {
    /// Returns the sources that are still starting, whose tools this search did not find.
    fn starting_sources(&self, context: &ToolContext) -> Vec<Arc<dyn ToolSource>> {
        let sources = lock(&self.sources);
        sources
            .iter()
            .filter_map(|source| source.starting_source(context))
            .collect()
    }
}

impl FoundTool {
    fn to_json(&self) -> Value {
        let mut hit = json!({"id": self.hit.id, "name": self.hit.name, "description": self.description});
        if let Some(inner) = &self.hit.leads_to {
            hit["leads_to"] = json!({"name": inner.name, "description": self.inner_description});
        }
        hit
    }
}
