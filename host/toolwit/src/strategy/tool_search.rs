//! Tools that are found when they are needed: before each turn by what the user said, and by the model itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::follower::Follower;
use toolwit_agent::injection::InjectionContext;
use toolwit_agent::injection::InjectionStrategy;
use toolwit_agent::injection::TurnContext;
use toolwit_agent::injection::{Injection, SEARCH_TOOLS};
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult, ToolSet};
use toolwit_registry::{HITS_DEFAULT, Hit, LiveRegistry, Query, Registry};
use toolwit_sandbox::Scope;

/// How long a search waits for the tools that it found to be loaded. What is not ready then loads when it is called.
pub const SEARCH_WALL_MAX: Duration = Duration::from_secs(5);

/// How many earlier messages of the user are context.
const RECENT_MAX: usize = 3;

/// The standing rules for a model that has tools and can search for more. They can be replaced.
pub const TOOL_GUIDANCE: &str = "\
You have tools, and `search_tools` finds more of them.
- When a tool can do what is asked, call it; do not describe what you would do.
- Call `search_tools` only for a capability that none of your tools has. What it finds becomes one of your tools: call it \
next, and do not search for the same thing again.
- Use the names of tools exactly as they are given.
- When a tool says that a key or a setting is missing, ask the user for it.
- A task may take several calls, one after the other.";

/// Finds tools in a registry and brings them into the conversation: by itself when the user has spoken, and with the tool
/// `search_tools` when the model asks.
///
/// It belongs to one conversation: clones share what was found.
#[derive(Clone)]
pub struct ToolSearch {
    shelf: Arc<Shelf>,
}

struct Shelf {
    follower: Follower,
    hits_max: usize,
    definition: ToolDefinition,
    /// What was found by the model before, so that it does not search in circles.
    found: Mutex<BTreeSet<String>>,
}

impl ToolSearch {
    /// Searches a registry for a conversation: resources of the tools that are found live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self::among(registry, scope, |_| true)
    }

    /// Searches among the tools whose id `may_use` allows: what this conversation may not use is neither found nor told of.
    #[must_use]
    pub fn among(
        registry: impl Into<LiveRegistry>,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words."},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let told = "Finds tools for a capability that none of your tools has. What is found becomes one of your tools.";
        let shelf = Shelf {
            follower: Follower::new(registry.into(), scope, may_use),
            hits_max: HITS_DEFAULT,
            definition: ToolDefinition::new(ToolId::host(SEARCH_TOOLS), SEARCH_TOOLS, told, schema),
            found: Mutex::default(),
        };
        Self { shelf: Arc::new(shelf) }
    }

    /// Returns the tool with which the model searches.
    #[must_use]
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(SearchTools {
            shelf: self.shelf.clone(),
        })
    }
}

impl Shelf {
    fn registry(&self) -> Registry {
        self.follower.registry()
    }

    fn search(&self, query: Query) -> Vec<Hit> {
        let query = query.hits_max(self.hits_max);
        self.registry().search(&query, |id| self.follower.may_use(id))
    }

    /// Makes the tools of these ids that are not there yet.
    fn missing<'i>(&self, ids: impl Iterator<Item = &'i str>, tools: &ToolSet) -> Injection {
        let there: BTreeSet<_> = tools
            .iter()
            .map(|named| named.tool.definition().id.to_string())
            .collect();
        let new = ids.filter(|id| !there.contains(*id));
        Injection::add(new.filter_map(|id| self.follower.tool(id)).collect())
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
                .any(|tool| tool.definition().id == self.shelf.definition.id)
        {
            return Injection::none();
        }
        let value = call.value();
        let hits = value.as_ref().and_then(|value| value["hits"].as_array());
        let ids = hits.into_iter().flatten().filter_map(|hit| hit["id"].as_str());
        self.shelf.missing(ids, context.tools())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.shelf.follower.tool(tool.as_str())
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let mut injection = match self.shelf.follower.advance() {
            Some((before, now)) => self.shelf.follower.moved(&before, &now, turn.tools()),
            None => Injection::none(),
        };
        let mut said = turn.user_messages();
        let Some(intent) = said.next() else {
            return injection;
        };
        let recent: Vec<_> = said.take(RECENT_MAX).collect();
        let hits = self
            .shelf
            .search(Query::new(intent).with_recent(recent.into_iter().rev()));
        let registry = self.shelf.registry();
        for plugin in hits.iter().filter_map(|hit| registry.plugin_of(&hit.id)) {
            // The model takes longer to answer than most components take to compile.
            plugin.compile();
        }
        injection.merge(self.shelf.missing(hits.iter().map(|hit| hit.id.as_str()), turn.tools()));
        injection
    }
}

/// `search_tools`.
struct SearchTools {
    shelf: Arc<Shelf>,
}

#[async_trait]
impl Tool for SearchTools {
    fn definition(&self) -> &ToolDefinition {
        &self.shelf.definition
    }

    async fn call(&self, arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(query) = arguments.get("query").and_then(Value::as_str) else {
            return Ok(ToolResult::error(
                "`query` must say in a few words what the tool should do",
            ));
        };
        let mut hits = self.shelf.search(Query::new(query));
        let failed = self.load(&hits).await;
        hits.retain(|hit| !failed.contains(&hit.id));
        let ids: BTreeSet<_> = hits.iter().map(|hit| hit.id.clone()).collect();
        let mut found = self.shelf.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = !ids.is_empty() && ids.is_subset(&found);
        found.extend(ids);
        drop(found);
        let registry = self.shelf.registry();
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
    /// Loads what was found, all at once. Returns the tools that cannot be loaded.
    async fn load(&self, hits: &[Hit]) -> BTreeSet<String> {
        let registry = self.shelf.registry();
        let loads = hits.iter().filter_map(|hit| {
            let plugin = registry.plugin_of(&hit.id)?.clone();
            Some(async move { (hit.id.clone(), plugin.prepare().await) })
        });
        let all = futures::future::join_all(loads.map(|load| tokio::time::timeout(SEARCH_WALL_MAX, load))).await;
        let mut failed = BTreeSet::new();
        for (id, outcome) in all.into_iter().flatten() {
            if let Err(error) = outcome {
                tracing::warn!(tool = id, %error, "a tool that was found cannot be loaded");
                failed.insert(id);
            }
        }
        failed
    }
}
