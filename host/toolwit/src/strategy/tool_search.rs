//! A strategy that searches for tools: before each turn for the user's message, and when the model calls `search_tools`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::follower::Follower;
use toolwit_agent::injection::InjectionContext;
use toolwit_agent::injection::InjectionStrategy;
use toolwit_agent::injection::TurnContext;
use toolwit_agent::injection::{Injection, SEARCH_TOOLS};
use toolwit_core::limits::SEARCH_WALL_MAX;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult, ToolSet};
use toolwit_registry::{HITS_DEFAULT, Hit, LiveRegistry, Query, Registry};
use toolwit_sandbox::Scope;

/// The number of earlier user messages that are used as context.
const RECENT_MAX: usize = 3;

/// The default guidance for a model that can search for tools. An embedder can replace it.
pub const TOOL_GUIDANCE: &str = "\
You have tools, and `search_tools` finds more of them.
- When a tool can do what is asked, call it; do not describe what you would do.
- Call `search_tools` only for a capability that none of your tools has. What it finds becomes one of your tools: call it \
next, and do not search for the same thing again.
- Use the names of tools exactly as they are given.
- When a tool says that a key or a setting is missing, ask the user for it.
- A task may take several calls, one after the other.";

/// Searches a registry and adds the found tools to the conversation: automatically for each message of the user, and with the
/// tool `search_tools` for the model.
///
/// An instance belongs to one conversation; clones share the list of earlier hits.
#[derive(Clone)]
pub struct ToolSearch {
    shared: Arc<SharedSearch>,
}

struct SharedSearch {
    follower: Follower,
    hits_max: usize,
    definition: ToolDefinition,
    /// The ids of all earlier hits. A repeated search gets a note, so that the model does not search in circles.
    found: Mutex<BTreeSet<String>>,
}

impl ToolSearch {
    /// Searches all tools of a registry. Resources that they return live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self::among(registry, scope, |_| true)
    }

    /// Searches the tools whose id `may_use` accepts. The conversation never has the others.
    #[must_use]
    pub fn among(
        registry: impl Into<LiveRegistry>,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "The task of the tool, in a few words."},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let description =
            "Finds tools for a capability that none of your tools has. What is found becomes one of your tools.";
        let shared = SharedSearch {
            follower: Follower::new(registry.into(), scope, may_use),
            hits_max: HITS_DEFAULT,
            definition: ToolDefinition::new(ToolId::host(SEARCH_TOOLS), SEARCH_TOOLS, description, schema),
            found: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the tool `search_tools`.
    #[must_use]
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(SearchTools {
            shared: self.shared.clone(),
        })
    }
}

impl SharedSearch {
    fn registry(&self) -> Registry {
        self.follower.registry()
    }

    fn search(&self, query: Query) -> Vec<Hit> {
        let query = query.with_hits_max(self.hits_max);
        self.registry().search(&query, |id| self.follower.may_use(id))
    }

    /// Returns the injection of the tools with these ids that the conversation does not have yet and may have.
    fn missing<'i>(&self, ids: impl Iterator<Item = &'i str>, tools: &ToolSet) -> Injection {
        let new = ids.filter(|id| tools.by_id(&ToolId::from_text(id)).is_none());
        let mut new: Vec<_> = new.filter_map(|id| self.follower.tool(id)).collect();
        new.retain(|tool| !tools.is_excluded(tool));
        Injection::add(new)
    }
}

impl InjectionStrategy for ToolSearch {
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![self.tool()]
    }

    fn guidance(&self) -> Option<&str> {
        Some(TOOL_GUIDANCE)
    }

    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let call = context.call();
        if call.result.is_error()
            || !call
                .decorator_chain()
                .any(|tool| tool.definition().id == self.shared.definition.id)
        {
            return Injection::none();
        }
        let value = call.value();
        let hits = value.as_ref().and_then(|value| value["hits"].as_array());
        let ids = hits.into_iter().flatten().filter_map(|hit| hit["id"].as_str());
        self.shared.missing(ids, context.tools())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.shared.follower.tool(tool.as_str())
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let mut injection = match self.shared.follower.advance() {
            Some((before, now)) => self.shared.follower.replacements(&before, &now, turn.tools()),
            None => Injection::none(),
        };
        let mut messages = turn.user_messages();
        let Some(intent) = messages.next() else {
            return injection;
        };
        let recent: Vec<_> = messages.take(RECENT_MAX).collect();
        let hits = self
            .shared
            .search(Query::new(intent).with_recent(recent.into_iter().rev()));
        let registry = self.shared.registry();
        for plugin in hits.iter().filter_map(|hit| registry.plugin_of(&hit.id)) {
            // Most components compile faster than the model answers.
            plugin.compile();
        }
        injection.merge(
            self.shared
                .missing(hits.iter().map(|hit| hit.id.as_str()), turn.tools()),
        );
        injection
    }
}

/// `search_tools`.
struct SearchTools {
    shared: Arc<SharedSearch>,
}

#[async_trait]
impl Tool for SearchTools {
    fn definition(&self) -> &ToolDefinition {
        &self.shared.definition
    }

    async fn call(&self, arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(query) = arguments.get("query").and_then(Value::as_str) else {
            return Ok(ToolResult::error(
                "`query` must say in a few words what the tool should do",
            ));
        };
        let mut hits = self.shared.search(Query::new(query));
        let failed = self.load(&hits).await;
        hits.retain(|hit| !failed.contains(&hit.id));
        let ids: BTreeSet<_> = hits.iter().map(|hit| hit.id.clone()).collect();
        let mut found = self.shared.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = !ids.is_empty() && ids.is_subset(&found);
        found.extend(ids);
        drop(found);
        let registry = self.shared.registry();
        let described = hits.iter().map(|hit| {
            let description = registry.definition(&hit.id).map(|tool| tool.description.as_str());
            json!({"id": hit.id, "name": hit.name, "description": description})
        });
        let note = match (hits.is_empty(), is_known) {
            (true, _) => "no tool fits; do without, or search with other words",
            (false, true) => "you searched for this before and these tools are already there: call one of them",
            (false, false) => "these are your tools now: call the one that fits",
        };
        Ok(ToolResult::value(
            json!({"hits": described.collect::<Vec<_>>(), "note": note}),
        ))
    }
}

impl SearchTools {
    /// Compiles the plugins of all hits concurrently. Returns the tools that cannot be loaded.
    async fn load(&self, hits: &[Hit]) -> BTreeSet<String> {
        let registry = self.shared.registry();
        let loads = hits.iter().filter_map(|hit| {
            let plugin = registry.plugin_of(&hit.id)?.clone();
            Some(async move { (hit.id.clone(), plugin.prepare().await) })
        });
        let all = futures::future::join_all(loads.map(|load| tokio::time::timeout(SEARCH_WALL_MAX, load))).await;
        let mut failed = BTreeSet::new();
        for (id, outcome) in all.into_iter().flatten() {
            if let Err(error) = outcome {
                tracing::warn!(tool = id, %error, "a found tool cannot be loaded");
                failed.insert(id);
            }
        }
        failed
    }
}
