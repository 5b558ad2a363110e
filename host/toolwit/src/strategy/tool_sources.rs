//! A strategy that shows the tools of sources, such as servers.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;

use super::source_ids::may_have;
use super::tool_search::ToolSearch;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{ConversationView, Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::limits::SOURCE_WALL_MAX;
use toolwit_core::{Caller, Tool, ToolContext, ToolId, ToolSet, decorator_chain};

/// Shows all tools of sources, such as servers. The sources are queried when a turn begins, with the context of the turn,
/// so that no source is contacted before the first turn. If a source cannot be reached, a warning is logged. The
/// conversation then keeps the earlier tools of this source, unless the turn has another [`Caller`]: tools that were listed
/// for one caller are never used by another.
///
/// Tools that appear in a source during a call are added after the call. A resumed conversation contacts the sources that
/// can have one of its tools. A `ToolSources` belongs to one conversation.
pub struct ToolSources {
    sources: Vec<Arc<dyn ToolSource>>,
    fallback_search: Option<FallbackSearch>,
    state: Mutex<SourcesState>,
}

/// The search that is used if there are too many tools to show all.
struct FallbackSearch {
    /// The maximum number of tools of the conversation without the search.
    tools_max: usize,
    strategy: ToolSearch,
}

/// The part of a [`ToolSources`] that changes during the conversation.
#[derive(Default)]
struct SourcesState {
    /// The ids of the tools that were added, by the position of their source in [`ToolSources::sources`].
    added_ids: HashMap<usize, BTreeSet<ToolId>>,
    /// The caller for whom the sources were queried last.
    caller: Option<Caller>,
    /// Whether the fallback search is used.
    is_search_active: bool,
}

impl ToolSources {
    /// Creates a strategy for the tools of these sources.
    #[must_use]
    pub fn new(sources: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Self {
        Self {
            sources: sources.into_iter().collect(),
            fallback_search: None,
            state: Mutex::default(),
        }
    }

    /// Sets a search. If the conversation would have more than `tools_max` tools, only those tools of the sources are shown
    /// that the search finds. Each turn counts the tools when it begins. Once the search is used, or the tools of a source
    /// are shown, the choice does not change any more. The search must cover the sources.
    #[must_use]
    pub fn with_fallback_search(mut self, tools_max: usize, search: ToolSearch) -> Self {
        self.fallback_search = Some(FallbackSearch {
            tools_max,
            strategy: search,
        });
        self
    }

    /// Returns the changes after which the conversation has the current tools of the sources. `current_tools` has the tools
    /// of sources with the position of each source. The tools of other sources stay.
    fn changes(&self, current_tools: Vec<(usize, Vec<Arc<dyn Tool>>)>, tools: &ToolSet) -> Injection {
        let mut injection = Injection::none();
        let mut state = self.state();
        for (position, source_tools) in current_tools {
            let added_ids = state.added_ids.entry(position).or_default();
            let current_ids: BTreeSet<_> = source_tools.iter().map(|tool| tool.definition().id.clone()).collect();
            // The tools of the conversation are compared, not those of an earlier query: the changes for that query may not
            // have been applied, because the run was stopped.
            let is_new_or_changed = |tool: &Arc<dyn Tool>| {
                let present = tools.by_id(&tool.definition().id);
                !present.is_some_and(|present| decorator_chain(&present.tool).any(|layer| Arc::ptr_eq(layer, tool)))
            };
            injection.add.extend(source_tools.into_iter().filter(is_new_or_changed));
            let is_gone = |id: &&ToolId| !current_ids.contains(id) && tools.by_id(id).is_some();
            injection.remove.extend(added_ids.iter().filter(is_gone).cloned());
            added_ids.retain(|id| tools.by_id(id).is_some());
            added_ids.extend(current_ids);
        }
        injection
    }

    /// Returns an empty list of tools for each source that is not in `current_tools`, if the sources were queried for another
    /// caller before.
    fn lists_of_unreached(
        &self,
        current_tools: &[(usize, Vec<Arc<dyn Tool>>)],
        context: &ToolContext,
    ) -> Vec<(usize, Vec<Arc<dyn Tool>>)> {
        let caller = Caller::of(context);
        let earlier = self.state().caller.replace(caller.clone());
        if earlier.is_none_or(|earlier| earlier == caller) {
            return Vec::new();
        }
        let is_reached = |position: &usize| current_tools.iter().any(|(reached, _)| reached == position);
        let unreached = (0..self.sources.len()).filter(|position| !is_reached(position));
        unreached.map(|position| (position, Vec::new())).collect()
    }

    /// Queries the sources that `is_needed` accepts. Returns the tools of the sources that respond in time, with the position
    /// of each source.
    async fn query(
        &self,
        context: &ToolContext,
        is_needed: impl Fn(&dyn ToolSource) -> bool,
    ) -> Vec<(usize, Vec<Arc<dyn Tool>>)> {
        let query_source = |(position, source): (usize, &Arc<dyn ToolSource>)| {
            let source = source.clone();
            async move {
                let answer = tokio::time::timeout(SOURCE_WALL_MAX, source.tools(context)).await;
                let name = source.name();
                match answer {
                    Ok(Ok(tools)) => return Some((position, tools)),
                    Ok(Err(error)) => tracing::warn!(source = name, %error, "a source of tools cannot be reached"),
                    Err(_) => {
                        tracing::warn!(source = name, limit = ?SOURCE_WALL_MAX, "a source of tools takes too long; its tools come later");
                    }
                }
                None
            }
        };
        let needed = self
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| is_needed(source.as_ref()));
        let answers = join_all(needed.map(query_source)).await;
        answers.into_iter().flatten().collect()
    }

    /// Returns the fallback search if it is used.
    fn active_search(&self) -> Option<&ToolSearch> {
        let search = self.fallback_search.as_ref()?;
        self.state().is_search_active.then_some(&search.strategy)
    }

    fn state(&self) -> MutexGuard<'_, SourcesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl InjectionStrategy for ToolSources {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        if let Some(search) = self.active_search() {
            return search.evaluate(context);
        }
        let view = context.view();
        let sources = self.sources.iter().enumerate();
        let current_tools =
            sources.filter_map(|(position, source)| Some((position, source.cached_tools(view.context())?)));
        self.changes(current_tools.collect(), view.tools())
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        if let Some(search) = self.active_search() {
            return search.begin_turn(turn).await;
        }
        let mut current_tools = self.query(turn.context(), |_| true).await;
        current_tools.extend(self.lists_of_unreached(&current_tools, turn.context()));
        let has_earlier_tools = !self.state().added_ids.is_empty();
        let is_new = |tool: &&Arc<dyn Tool>| turn.tools().by_id(&tool.definition().id).is_none();
        let new_tool_count = current_tools.iter().flat_map(|(_, tools)| tools).filter(is_new).count();
        let tool_count = turn.tools().iter().count() + new_tool_count;
        if let Some(search) = self
            .fallback_search
            .as_ref()
            .filter(|search| !has_earlier_tools && tool_count > search.tools_max)
        {
            self.state().is_search_active = true;
            let mut injection = Injection::add(vec![search.strategy.tool()]);
            injection.merge(search.strategy.begin_turn(turn).await);
            return injection;
        }
        self.changes(current_tools, turn.tools())
    }

    /// Restores the search tool of an earlier process, and with it the choice of the search. The tools of the sources are
    /// [recovered](Self::recover) later.
    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        let search = &self.fallback_search.as_ref()?.strategy;
        let search_tool = search.tool();
        if search_tool.definition().id == *tool {
            self.state().is_search_active = true;
            return Some(search_tool);
        }
        search.restore(tool)
    }

    async fn recover(&self, lost: &[ToolId], view: &ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
        if let Some(search) = self.active_search() {
            return search.recover(lost, view).await;
        }
        let is_needed = |source: &dyn ToolSource| lost.iter().any(|id| may_have(source, id));
        let answers = self.query(view.context(), is_needed).await;
        let mut state = self.state();
        state.caller = Some(Caller::of(view.context()));
        let mut recovered = Vec::new();
        for (position, tools) in answers {
            let found = tools.into_iter().filter(|tool| lost.contains(&tool.definition().id));
            let found: Vec<_> = found.collect();
            let ids = found.iter().map(|tool| tool.definition().id.clone());
            state.added_ids.entry(position).or_default().extend(ids);
            recovered.extend(found);
        }
        recovered
    }
}
