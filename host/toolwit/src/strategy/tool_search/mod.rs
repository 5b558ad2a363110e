//! A strategy that searches for tools: before each turn for the user's message, and when the model calls
//! `search_tools`.
//!
//! A search covers the packages of the registry, the tools of further sources, and the tools that the conversation already
//! has. [`SharedSearch`] ranks all of them together. It compiles the plugins of found tools before the tools are added.

mod concurrent_loads;
mod earlier_searches;
mod search_tools;
mod tool_index;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;

use self::concurrent_loads::load_all;
use self::earlier_searches::EarlierSearches;
use self::search_tools::SearchTools;
pub use self::search_tools::search_tools_definition;
use self::tool_index::{SourceIndex, ToolIndex};
use super::TOOL_GUIDANCE;
use super::registry_view::RegistryView;
use super::source_ids::may_have;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{ConversationView, Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::limits::{SEARCH_WALL_MAX, SOURCE_WALL_MAX};
use toolwit_core::{Caller, Tool, ToolContext, ToolDefinition, ToolId, ToolSet};
use toolwit_registry::{CatalogUnion, Cutoff, EmbeddingModel, HITS_DEFAULT, Hit, LiveRegistry, Query};
use toolwit_sandbox::Scope;

/// Maximum number of earlier user messages that an automatic search uses as context.
const RECENT_MESSAGES_MAX: usize = 3;

/// Number of tools that a search ranks for each hit that it returns. The further tools replace those that cannot be
/// loaded.
const RANKED_PER_HIT: usize = 4;

/// Searches a registry and further sources, and adds the found tools to the conversation: automatically for each
/// message of the user, and with the tool `search_tools` for the model.
///
/// The search also covers the tools that the conversation already has, the inner tools of facades and the methods of
/// entities. For an inner tool or a method, the model learns which of its tools leads there. A `ToolSearch` belongs to one
/// conversation. Clones share everything, such as the results of earlier searches.
#[derive(Clone)]
pub struct ToolSearch {
    shared: Arc<SharedSearch>,
}

/// The tools that a conversation can search, and its earlier searches. The clones of a [`ToolSearch`] and the tool
/// `search_tools` share it.
struct SharedSearch {
    registry_view: RegistryView,
    sources: Mutex<Vec<Arc<SourceIndex>>>,
    /// The tools of the conversation that come neither from the registry nor from a source.
    conversation_index: Mutex<Arc<ToolIndex>>,
    /// The ids of the tools that the application has removed from the conversation. A search does not find them.
    excluded_ids: Mutex<Arc<HashSet<String>>>,
    earlier_searches: Mutex<EarlierSearches>,
    /// The caller of the last turn; `None` before the first turn.
    caller: Mutex<Option<Caller>>,
    /// The definition of `search_tools`.
    definition: ToolDefinition,
}

/// A tool that a search found.
#[derive(Clone)]
struct FoundTool {
    hit: Hit,
    description: String,
    /// The description of the found inner tool or method, if `hit` is only the tool that leads to it.
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
            registry_view: RegistryView::new(registry.into(), scope, may_use),
            sources: Mutex::default(),
            conversation_index: Mutex::default(),
            excluded_ids: Mutex::default(),
            earlier_searches: Mutex::default(),
            caller: Mutex::default(),
            definition: search_tools::definition(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Searches these native tools and facades too. The model sees such a tool only after a search has found it.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let model = self.shared.embedding_model();
        self.with_source_index(SourceIndex::fixed(tools.into_iter().collect(), model))
    }

    /// Searches the tools of a source too, such as a server. Each search queries the source with the caller's context. The
    /// source can return other tools each time.
    #[must_use]
    pub fn with_source(self, source: impl ToolSource + 'static) -> Self {
        let model = self.shared.embedding_model();
        self.with_source_index(SourceIndex::new(Arc::new(source), model))
    }

    fn with_source_index(self, source: SourceIndex) -> Self {
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
    /// Returns the tools that fit a query, best first. Tools that cannot be loaded are skipped.
    async fn find(&self, query: Query, context: &ToolContext) -> Vec<FoundTool> {
        let ranked = self
            .rank(query.with_hits_max(HITS_DEFAULT * RANKED_PER_HIT), context)
            .await;
        let mut found = Vec::new();
        let mut ranked = ranked.into_iter();
        while found.len() < HITS_DEFAULT {
            let candidates: Vec<_> = ranked.by_ref().take(HITS_DEFAULT - found.len()).collect();
            if candidates.is_empty() {
                break;
            }
            found.extend(self.load(candidates).await);
        }
        found
    }

    /// Ranks the tools of the registry, the sources and the conversation together, as if they were in one index.
    async fn rank(&self, query: Query, context: &ToolContext) -> Vec<FoundTool> {
        let sources = lock(&self.sources).clone();
        let indexes = join_all(sources.iter().map(|source| source.index(context, SEARCH_WALL_MAX))).await;
        let registry = self.registry_view.snapshot();
        let conversation_index = lock(&self.conversation_index).clone();
        let excluded_ids = lock(&self.excluded_ids).clone();
        let catalogs = indexes.iter().chain([&conversation_index]).map(|index| &index.catalog);
        let is_excluded = |id: &str| excluded_ids.contains(tool_index::without_path(id));
        let may_use =
            |id: &str| (conversation_index.tool(id).is_some() || self.registry_view.may_use(id)) && !is_excluded(id);
        let hits = CatalogUnion::new(catalogs.chain([registry.catalog()])).search(&query, may_use);
        let indexes: Vec<_> = indexes.iter().chain([&conversation_index]).collect();
        let describe = |id: &str| {
            let description = indexes.iter().find_map(|index| index.description(id));
            description.or_else(|| Some(&registry.definition(id).or_else(|| registry.method(id))?.description))
        };
        let to_found_tool = |hit: Hit| FoundTool {
            description: describe(&hit.id).cloned().unwrap_or_default(),
            inner_description: hit.leads_to.as_ref().and_then(|inner| describe(&inner.id)).cloned(),
            hit,
        };
        hits.into_iter().map(to_found_tool).collect()
    }

    /// Returns the embedding model of the registry, which the other indexes use too.
    fn embedding_model(&self) -> Option<Arc<dyn EmbeddingModel>> {
        self.registry_view.snapshot().catalog().embedding_model().cloned()
    }

    /// Compiles the plugins of tools concurrently. Omits the tools whose plugins cannot be compiled.
    async fn load(&self, tools: Vec<FoundTool>) -> Vec<FoundTool> {
        let registry = self.registry_view.snapshot();
        let loads = tools.into_iter().map(|tool| {
            // `None` if the tool is native or comes from a source.
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

    /// Updates the search to the tools that the conversation has and excludes now.
    fn update_conversation_tools(&self, tools: &ToolSet) {
        let current_ids: HashSet<_> = tools.excluded().map(ToString::to_string).collect();
        let mut excluded_ids = lock(&self.excluded_ids);
        if **excluded_ids != current_ids {
            *excluded_ids = Arc::new(current_ids);
            lock(&self.earlier_searches).clear_results();
        }
        drop(excluded_ids);
        self.index_conversation_tools(tools);
    }

    /// Indexes the tools of the conversation that are neither in the registry nor in a source.
    fn index_conversation_tools(&self, tools: &ToolSet) {
        let registry = self.registry_view.snapshot();
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
            lock(&self.earlier_searches).clear_results();
        }
    }

    /// Returns a tool of the registry or of a source that the conversation may use.
    fn tool(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let find_in_sources = || {
            let sources = lock(&self.sources);
            let mut tools = sources.iter().filter_map(|source| source.tool(id));
            tools.next().filter(|_| self.registry_view.may_use(id))
        };
        self.registry_view.tool(id).or_else(find_in_sources)
    }

    /// Returns the injection for found tools. It adds the tools that the conversation does not have, or that were lost in a
    /// resume. The loop declares the others again if they are hidden.
    fn injection<'i>(&self, ids: impl Iterator<Item = &'i str>, view: &ConversationView<'_>) -> Injection {
        let mut injection = Injection::none();
        let tools = view.tools();
        for id in ids.map(ToolId::from_text) {
            if tools.by_id(&id).is_some() && !view.entities().is_lost(&id) {
                injection.listed.push(id);
            } else {
                let tool = self.tool(id.as_str()).filter(|tool| !tools.is_excluded(tool));
                injection.add.extend(tool);
            }
        }
        injection
    }

    /// Records the caller of a turn. If the previous turn had another caller, returns the changes after which the conversation
    /// has the tools that the sources return for this caller, instead of those that they returned for the earlier caller.
    async fn change_caller(&self, turn: &TurnContext<'_>) -> Injection {
        let caller = Caller::of(turn.context());
        let earlier = lock(&self.caller).clone();
        if earlier.is_none_or(|earlier| earlier == caller) {
            *lock(&self.caller) = Some(caller);
            return Injection::none();
        }
        lock(&self.earlier_searches).clear_results();
        let sources = lock(&self.sources).clone();
        let present: Vec<_> = turn.tools().iter().map(|named| named.definition.id.clone()).collect();
        let mut injection = Injection::none();
        let indexes = sources.iter().map(async |source| {
            let listed = present.iter().filter(|id| source.tool(id.as_str()).is_some());
            let listed: Vec<_> = listed.collect();
            if !listed.is_empty() {
                source.index(turn.context(), SEARCH_WALL_MAX).await;
            }
            (source, listed)
        });
        for (source, listed) in join_all(indexes).await {
            for id in listed {
                let tool = source
                    .tool(id.as_str())
                    .filter(|_| self.registry_view.may_use(id.as_str()));
                match tool {
                    Some(tool) => injection.add.push(tool),
                    None => injection.remove.push(id.clone()),
                }
            }
        }
        // Only now: a turn that is stopped before has not changed the tools, and the next one begins again.
        *lock(&self.caller) = Some(caller);
        injection
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
        // The called tool may be a decorator around `search_tools`.
        let is_search = call
            .decorator_chain()
            .any(|tool| tool.definition().id == self.shared.definition.id);
        if call.result.is_error() || !is_search {
            return Injection::none();
        }
        let value = call.value();
        let hits = value.as_ref().and_then(|value| value["hits"].as_array());
        let ids: Vec<_> = hits
            .into_iter()
            .flatten()
            .filter_map(|hit| hit["id"].as_str())
            .collect();
        // A resume evaluates the calls of an earlier process again. `earlier_searches` does not have the ids of their hits.
        lock(&self.shared.earlier_searches).add_found_ids(ids.iter().copied());
        self.shared.injection(ids.into_iter(), &context.view())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.shared.tool(tool.as_str())
    }

    async fn recover(&self, lost: &[ToolId], view: &ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
        let shared = &self.shared;
        let sources = lock(&shared.sources).clone();
        let needed = sources
            .iter()
            .filter(|source| lost.iter().any(|id| may_have(source.source.as_ref(), id)));
        join_all(needed.map(|source| source.index(view.context(), SOURCE_WALL_MAX))).await;
        *lock(&shared.caller) = Some(Caller::of(view.context()));
        let tools = lost.iter().filter_map(|id| shared.tool(id.as_str()));
        tools.collect()
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let shared = &self.shared;
        let mut injection = match shared.registry_view.advance() {
            Some((previous, current)) => {
                lock(&shared.earlier_searches).clear_results();
                shared.registry_view.replacements(&previous, &current, turn.tools())
            }
            None => Injection::none(),
        };
        injection.merge(shared.change_caller(turn).await);
        shared.registry_view.retain_components(turn.tools(), &injection).await;
        shared.update_conversation_tools(turn.tools());
        let mut messages = turn.user_messages();
        let Some(intent) = messages.next() else {
            return injection;
        };
        let earlier_messages: Vec<_> = messages.take(RECENT_MESSAGES_MAX).collect();
        let query = Query::new(intent)
            .with_recent(earlier_messages.into_iter().rev())
            .with_cutoff(Cutoff::Confident);
        let found = shared.find(query.clone(), turn.context()).await;
        injection.merge(shared.injection(found.iter().map(|tool| tool.hit.id.as_str()), &turn.view()));
        lock(&shared.earlier_searches).store(&query, found);
        injection
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
