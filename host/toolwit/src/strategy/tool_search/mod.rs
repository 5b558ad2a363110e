//! A strategy that searches for tools: before each turn for the user's message, and when the model calls
//! `search_tools`.
//!
//! [`SharedSearch`] searches the packages of the registry, the tools of further sources, and the tools that the
//! conversation has already, as one index. The plugins of hits are compiled before their tools are added.

mod concurrent_loads;
mod earlier_searches;
mod search_tools;
mod tool_index;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;

use self::concurrent_loads::load_all;
use self::earlier_searches::EarlierSearches;
use self::search_tools::SearchTools;
pub use self::search_tools::search_tools_definition;
use self::tool_index::{SourceIndex, ToolIndex};
use super::TOOL_GUIDANCE;
use super::follower::Follower;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::limits::SEARCH_WALL_MAX;
use toolwit_core::{Tool, ToolContext, ToolDefinition, ToolId, ToolSet};
use toolwit_registry::{CatalogUnion, Cutoff, EmbeddingModel, HITS_DEFAULT, Hit, LiveRegistry, Query};
use toolwit_sandbox::Scope;

/// Maximum number of earlier messages of the user that are the context of a search.
const RECENT_MAX: usize = 3;

/// Number of tools that a search ranks for each requested hit, so that further tools replace those that cannot be
/// loaded.
const RANKED_FACTOR: usize = 4;

/// Searches a registry and further sources, and adds the found tools to the conversation: automatically for each
/// message of the user, and with the tool `search_tools` for the model.
///
/// The search also covers the tools that the conversation has already, the inner tools of facades and the methods of
/// entities, so that the model learns which of its tools leads to an inner tool or a method. An instance belongs to one
/// conversation; clones share the results of earlier searches.
#[derive(Clone)]
pub struct ToolSearch {
    shared: Arc<SharedSearch>,
}

/// The state of the searches of a conversation.
struct SharedSearch {
    follower: Follower,
    sources: Mutex<Vec<Arc<SourceIndex>>>,
    /// The tools of the conversation that come neither from the registry nor from a source.
    conversation_index: Mutex<Arc<ToolIndex>>,
    /// The ids of the tools that the conversation excludes.
    excluded: Mutex<Arc<HashSet<String>>>,
    earlier_searches: Mutex<EarlierSearches>,
    /// The ids of tools that a resumed conversation had in an earlier process, and that no source has returned yet.
    unrestored: Mutex<BTreeSet<ToolId>>,
    definition: ToolDefinition,
}

/// A tool that a search found.
#[derive(Clone)]
struct FoundTool {
    hit: Hit,
    description: String,
    /// The description of the inner tool or method that was found, if the tool leads to it.
    inner_description: Option<String>,
}

impl ToolSearch {
    /// Creates a search of all tools of a registry. Resources that the tools return live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self::among(registry, scope, |_| true)
    }

    /// Creates a search of the tools whose ids `may_use` accepts. The conversation never has any other tool of the
    /// registry or of a source.
    #[must_use]
    pub fn among(
        registry: impl Into<LiveRegistry>,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let shared = SharedSearch {
            follower: Follower::new(registry.into(), scope, may_use),
            sources: Mutex::default(),
            conversation_index: Mutex::default(),
            excluded: Mutex::default(),
            earlier_searches: Mutex::default(),
            unrestored: Mutex::default(),
            definition: search_tools::definition(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Searches these tools too: native tools and facades that the model does not see before they are found.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let model = self.shared.embedding_model();
        self.with_index(SourceIndex::fixed(tools.into_iter().collect(), model))
    }

    /// Searches the tools of a source too, such as a server. The source is queried at each search, with the caller's
    /// context, and can return other tools each time.
    #[must_use]
    pub fn with_source(self, source: impl ToolSource + 'static) -> Self {
        let model = self.shared.embedding_model();
        self.with_index(SourceIndex::new(Arc::new(source), model))
    }

    fn with_index(self, source: SourceIndex) -> Self {
        lock(&self.shared.sources).push(Arc::new(source));
        self
    }

    /// Returns the tool `search_tools`.
    #[must_use]
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(SearchTools::new(self.shared.clone()))
    }
}

impl SharedSearch {
    /// Returns the tools that fit a query and can be called, best first. Tools that cannot be loaded are skipped.
    async fn find(&self, query: Query, context: &ToolContext) -> Vec<FoundTool> {
        let ranked = self
            .rank(query.with_hits_max(HITS_DEFAULT * RANKED_FACTOR), context)
            .await;
        let mut found = Vec::new();
        let mut ranked = ranked.into_iter();
        while found.len() < HITS_DEFAULT {
            let next: Vec<_> = ranked.by_ref().take(HITS_DEFAULT - found.len()).collect();
            if next.is_empty() {
                break;
            }
            found.extend(self.load(next).await);
        }
        found
    }

    /// Ranks the tools of the registry, the sources and the conversation as one index.
    async fn rank(&self, query: Query, context: &ToolContext) -> Vec<FoundTool> {
        let sources = lock(&self.sources).clone();
        let indexes = join_all(sources.iter().map(|source| source.index(context, SEARCH_WALL_MAX))).await;
        let registry = self.follower.registry();
        let conversation_index = lock(&self.conversation_index).clone();
        let excluded = lock(&self.excluded).clone();
        let catalogs = indexes.iter().chain([&conversation_index]).map(|index| &index.catalog);
        let is_excluded = |id: &str| excluded.contains(tool_index::without_path(id));
        let may_use =
            |id: &str| (conversation_index.tool(id).is_some() || self.follower.may_use(id)) && !is_excluded(id);
        let hits = CatalogUnion::new(catalogs.chain([registry.catalog()])).search(&query, may_use);
        let indexes: Vec<_> = indexes.iter().chain([&conversation_index]).collect();
        let describe = |id: &str| {
            let indexed = indexes.iter().find_map(|index| index.description(id));
            indexed.or_else(|| Some(&registry.definition(id).or_else(|| registry.method(id))?.description))
        };
        let to_found_tool = |hit: Hit| FoundTool {
            description: describe(&hit.id).cloned().unwrap_or_default(),
            inner_description: hit.leads_to.as_ref().and_then(|inner| describe(&inner.id)).cloned(),
            hit,
        };
        hits.into_iter().map(to_found_tool).collect()
    }

    /// Returns the model of the search by meaning, which is that of the registry.
    fn embedding_model(&self) -> Option<Arc<dyn EmbeddingModel>> {
        self.follower.registry().catalog().embedding_model().cloned()
    }

    /// Compiles the plugins of tools concurrently, and omits the tools that cannot be loaded.
    async fn load(&self, tools: Vec<FoundTool>) -> Vec<FoundTool> {
        let registry = self.follower.registry();
        let loads = tools.into_iter().map(|tool| {
            let plugin = registry.definition(&tool.hit.id).and(registry.plugin_of(&tool.hit.id));
            async move {
                if let Some(plugin) = plugin {
                    plugin.compile().await.inspect_err(
                        |error| tracing::warn!(tool = tool.hit.id, %error, "a found tool cannot be loaded"),
                    )?;
                }
                Ok(tool)
            }
        });
        load_all(loads).await
    }

    /// Follows the tools of the conversation: indexes the tools that are neither in the registry nor in a source, and
    /// leaves the tools that the conversation excludes out of the results.
    fn follow(&self, tools: &ToolSet) {
        let excluded: HashSet<_> = tools.excluded().map(ToString::to_string).collect();
        let mut current = lock(&self.excluded);
        if **current != excluded {
            *current = Arc::new(excluded);
            lock(&self.earlier_searches).forget_results();
        }
        drop(current);
        self.index_conversation_tools(tools);
    }

    /// Indexes the tools of the conversation that are neither in the registry nor in a source.
    fn index_conversation_tools(&self, tools: &ToolSet) {
        let registry = self.follower.registry();
        let sources = lock(&self.sources).clone();
        let is_conversation_tool = |id: &ToolId| {
            !id.is_host()
                && registry.definition(id.as_str()).is_none()
                && !sources.iter().any(|source| source.tool(id.as_str()).is_some())
        };
        let conversation_tools: Vec<_> = tools
            .iter()
            .filter(|named| is_conversation_tool(&named.definition.id))
            .map(|named| (named.name.as_str(), named.tool.clone()))
            .collect();
        let mut index = lock(&self.conversation_index);
        if !index.has_same_tools(&conversation_tools) {
            *index = Arc::new(ToolIndex::of(conversation_tools, registry.catalog().embedding_model()));
            lock(&self.earlier_searches).forget_results();
        }
    }

    /// Returns a tool of the registry or of a source that the conversation may use.
    fn tool(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let find_in_sources = || {
            let sources = lock(&self.sources);
            let mut tools = sources.iter().filter_map(|source| source.tool(id));
            tools.next().filter(|_| self.follower.may_use(id))
        };
        self.follower.tool(id).or_else(find_in_sources)
    }

    /// Returns the injection for found tools: it adds those that the conversation does not have, and declares the
    /// others again.
    fn injection<'i>(&self, ids: impl Iterator<Item = &'i str>, tools: &ToolSet) -> Injection {
        let mut injection = Injection::none();
        for id in ids.map(ToolId::from_text) {
            if tools.by_id(&id).is_some() && !lock(&self.unrestored).contains(&id) {
                injection.listed.push(id);
            } else {
                let tool = self.tool(id.as_str()).filter(|tool| !tools.is_excluded(tool));
                if tool.is_some() {
                    lock(&self.unrestored).remove(&id);
                }
                injection.add.extend(tool);
            }
        }
        injection
    }

    /// Queries the sources for the tools that could not be restored. Returns the injection that adds the tools that a
    /// source has.
    async fn recover(&self, turn: &TurnContext<'_>) -> Injection {
        let unrestored: Vec<_> = lock(&self.unrestored).iter().map(ToString::to_string).collect();
        if unrestored.is_empty() {
            return Injection::none();
        }
        let sources = lock(&self.sources).clone();
        join_all(
            sources
                .iter()
                .map(|source| source.index(turn.context(), SEARCH_WALL_MAX)),
        )
        .await;
        // A tool that the conversation no longer has stays removed.
        let is_present = |id: &&String| turn.tools().by_id(&ToolId::from_text(id)).is_some();
        self.injection(unrestored.iter().filter(is_present).map(String::as_str), turn.tools())
    }
}

#[async_trait]
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
        let ids: Vec<_> = hits
            .into_iter()
            .flatten()
            .filter_map(|hit| hit["id"].as_str())
            .collect();
        // If another process made the call before a resume, `earlier_searches` does not have these ids yet.
        lock(&self.shared.earlier_searches).add_found(ids.iter().copied());
        self.shared.injection(ids.into_iter(), context.tools())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        let restored = self.shared.tool(tool.as_str());
        if restored.is_none() {
            // A source may have the tool. The sources are contacted when the next turn begins.
            lock(&self.shared.unrestored).insert(tool.clone());
        }
        restored
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let shared = &self.shared;
        let mut injection = match shared.follower.advance() {
            Some((before, now)) => {
                lock(&shared.earlier_searches).forget_results();
                shared.follower.replacements(&before, &now, turn.tools())
            }
            None => Injection::none(),
        };
        injection.merge(shared.recover(turn).await);
        shared.follower.retain_components(turn.tools(), &injection).await;
        shared.follow(turn.tools());
        let mut messages = turn.user_messages();
        let Some(intent) = messages.next() else {
            return injection;
        };
        let recent: Vec<_> = messages.take(RECENT_MAX).collect();
        let query = Query::new(intent)
            .with_recent(recent.into_iter().rev())
            .with_cutoff(Cutoff::Confident);
        let found = shared.find(query.clone(), turn.context()).await;
        injection.merge(shared.injection(found.iter().map(|tool| tool.hit.id.as_str()), turn.tools()));
        lock(&shared.earlier_searches).remember(&query, found);
        injection
    }
}

/// Locks a mutex, and ignores that a thread panicked while it was locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
