//! The tools of sources that a conversation has queried.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::source::ToolSource;
use super::source_tools::SourceTools;
use toolwit_core::{Caller, Error, ToolContext};

/// The tools of the sources that a conversation and its agents have queried for one caller. Clones share the cached tools.
///
/// Each outermost conversation has a cache of its own. A source may return other tools for another caller, so the tools of a
/// caller are dropped when another caller needs tools.
#[derive(Clone, Default)]
pub(crate) struct SourceCache(Arc<Mutex<CachedSources>>);

/// The tools of one caller.
#[derive(Default)]
struct CachedSources {
    /// `None` before the first query.
    caller: Option<Caller>,
    /// The tools of the sources, by their names.
    sources: BTreeMap<String, Arc<OnceCell<SourceTools>>>,
}

impl SourceCache {
    /// Returns the cache of the conversation in which a call with this context runs, or an empty cache outside a conversation.
    pub(crate) fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Returns the tools of a source for the caller of the context. If the source must be contacted, its tools are cached, so
    /// that it is queried once for a caller. An error is not cached.
    ///
    /// # Errors
    /// If the source cannot be reached.
    pub(super) async fn load(&self, source: &dyn ToolSource, context: &ToolContext) -> Result<SourceTools, Error> {
        if source.listed_names().is_some() {
            return SourceTools::load_without_log(source, context).await;
        }
        let caller = Some(Caller::of(context));
        let cell = {
            let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if cached.caller != caller {
                cached.sources.clear();
                cached.caller = caller;
            }
            cached.sources.entry(source.name().to_owned()).or_default().clone()
        };
        let tools = cell.get_or_try_init(|| SourceTools::load(source, context)).await?;
        Ok(tools.clone())
    }
}
