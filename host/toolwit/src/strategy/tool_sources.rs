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

/// Shows all tools of sources, such as servers. The sources are queried when a turn begins, with its context, so that
/// nothing is contacted before the first turn. A source that cannot be reached is reported in the log; its earlier
/// tools stay, and the other sources work.
///
/// Tools that a source adds during a call are there for the next call. An instance belongs to one conversation.
pub struct ToolSources {
    sources: Vec<Arc<dyn ToolSource>>,
    search: Option<FallbackSearch>,
    state: Mutex<SourcesState>,
}

/// The search that is used if there are too many tools to show.
struct FallbackSearch {
    tools_max: usize,
    strategy: ToolSearch,
}

#[derive(Default)]
struct SourcesState {
    /// The tools that were added, by the position of their source.
    added_tools: HashMap<usize, Vec<Arc<dyn Tool>>>,
    /// Whether the search shows the tools.
    is_searching: bool,
}

impl ToolSources {
    /// Creates a strategy for the tools of these sources.
    #[must_use]
    pub fn new(sources: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Self {
        Self {
            sources: sources.into_iter().collect(),
            search: None,
            state: Mutex::default(),
        }
    }

    /// Shows only the tools that a search finds if the conversation would have more than `tools_max` tools. The
    /// decision is final when the search is used or a source has returned its tools. The search must cover the sources.
    #[must_use]
    pub fn or_search(mut self, tools_max: usize, search: ToolSearch) -> Self {
        self.search = Some(FallbackSearch {
            tools_max,
            strategy: search,
        });
        self
    }

    /// Returns the changes after which the conversation has the current tools of the sources. `current` contains the
    /// tools by the position of their source.
    fn changes(&self, current: Vec<(usize, Vec<Arc<dyn Tool>>)>, tools: &ToolSet) -> Injection {
        let mut injection = Injection::none();
        let mut state = self.state();
        for (position, source_tools) in current {
            let earlier: HashMap<ToolId, Arc<dyn Tool>> = state
                .added_tools
                .remove(&position)
                .into_iter()
                .flatten()
                .map(|tool| (tool.definition().id.clone(), tool))
                .collect();
            let ids: Vec<_> = source_tools.iter().map(|tool| tool.definition().id.clone()).collect();
            let is_new = |tool: &&Arc<dyn Tool>| {
                let id = &tool.definition().id;
                let is_same = earlier
                    .get(id)
                    .is_some_and(|earlier_tool| Arc::ptr_eq(earlier_tool, tool));
                !is_same || tools.by_id(id).is_none()
            };
            injection.add.extend(source_tools.iter().filter(is_new).cloned());
            let mut removed_ids: Vec<_> = earlier.into_keys().filter(|id| !ids.contains(id)).collect();
            removed_ids.sort();
            injection.remove.extend(removed_ids);
            state.added_tools.insert(position, source_tools);
        }
        injection
    }

    /// Returns the tools of the sources that can be reached in time, by the position of their source.
    async fn query(&self, context: &ToolContext) -> Vec<(usize, Vec<Arc<dyn Tool>>)> {
        let query = |(position, source): (usize, &Arc<dyn ToolSource>)| {
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
        let answers = join_all(self.sources.iter().enumerate().map(query)).await;
        answers.into_iter().flatten().collect()
    }

    /// Returns the search if it shows the tools.
    fn active_search(&self) -> Option<&ToolSearch> {
        let search = self.search.as_ref()?;
        self.state().is_searching.then_some(&search.strategy)
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
        let current = sources.filter_map(|(position, source)| Some((position, source.cached_tools(view.context())?)));
        self.changes(current.collect(), view.tools())
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        if let Some(search) = self.active_search() {
            return search.begin_turn(turn).await;
        }
        let current = self.query(turn.context()).await;
        let is_first = self.state().added_tools.is_empty();
        let count = turn.tools().iter().count() + current.iter().map(|(_, tools)| tools.len()).sum::<usize>();
        if let Some(search) = self
            .search
            .as_ref()
            .filter(|search| is_first && count > search.tools_max)
        {
            self.state().is_searching = true;
            let mut injection = Injection::add(vec![search.strategy.tool()]);
            injection.merge(search.strategy.begin_turn(turn).await);
            return injection;
        }
        self.changes(current, turn.tools())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        let added_tool = {
            let state = self.state();
            let mut added_tools = state.added_tools.values().flatten();
            added_tools.find(|added| added.definition().id == *tool).cloned()
        };
        // The fallback search is tried even if it is not active: that is decided later, when the first turn in this
        // process begins.
        added_tool.or_else(|| self.search.as_ref()?.strategy.restore(tool))
    }
}
