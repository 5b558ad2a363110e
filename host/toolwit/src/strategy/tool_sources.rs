//! A strategy that shows the tools of sources, such as servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;

use super::tool_search::ToolSearch;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::limits::SOURCE_WALL_MAX;
use toolwit_core::{Tool, ToolContext, ToolId, ToolSet};

/// Shows all tools of sources, such as servers. The sources are queried when a turn begins, with the context of the turn,
/// so that no source is contacted before the first turn. If a source cannot be reached, a warning is logged. The
/// conversation then keeps the earlier tools of this source.
///
/// Tools that appear in a source during a call are added after the call. A `ToolSources` belongs to one conversation.
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
    /// The tools that were added, by the position of their source in [`ToolSources::sources`].
    added_tools: HashMap<usize, Vec<Arc<dyn Tool>>>,
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
            let earlier_tools: HashMap<ToolId, Arc<dyn Tool>> = state
                .added_tools
                .remove(&position)
                .into_iter()
                .flatten()
                .map(|tool| (tool.definition().id.clone(), tool))
                .collect();
            let current_ids: Vec<_> = source_tools.iter().map(|tool| tool.definition().id.clone()).collect();
            let is_new_or_changed = |tool: &&Arc<dyn Tool>| {
                let id = &tool.definition().id;
                let is_unchanged = earlier_tools
                    .get(id)
                    .is_some_and(|earlier_tool| Arc::ptr_eq(earlier_tool, tool));
                !is_unchanged || tools.by_id(id).is_none()
            };
            injection
                .add
                .extend(source_tools.iter().filter(is_new_or_changed).cloned());
            let mut removed_ids: Vec<_> = earlier_tools
                .into_keys()
                .filter(|id| !current_ids.contains(id))
                .collect();
            removed_ids.sort();
            injection.remove.extend(removed_ids);
            state.added_tools.insert(position, source_tools);
        }
        injection
    }

    /// Queries the sources. Returns the tools of the sources that respond in time, with the position of each source.
    async fn query(&self, context: &ToolContext) -> Vec<(usize, Vec<Arc<dyn Tool>>)> {
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
        let answers = join_all(self.sources.iter().enumerate().map(query_source)).await;
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
        let current_tools = self.query(turn.context()).await;
        let has_earlier_tools = !self.state().added_tools.is_empty();
        let source_tool_count: usize = current_tools.iter().map(|(_, tools)| tools.len()).sum();
        let tool_count = turn.tools().iter().count() + source_tool_count;
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

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        let added_tool = {
            let state = self.state();
            let mut added_tools = state.added_tools.values().flatten();
            added_tools.find(|added| added.definition().id == *tool).cloned()
        };
        // Tools are restored before the first turn of this process, which decides whether the fallback search is used. The
        // fallback search is therefore tried in any case.
        added_tool.or_else(|| self.fallback_search.as_ref()?.strategy.restore(tool))
    }
}
