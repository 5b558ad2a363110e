//! The earlier searches of a conversation, so that a model does not repeat them.

use std::collections::{BTreeSet, HashMap};

use super::FoundTool;
use toolwit_registry::Query;

/// The results of the earlier searches of a conversation, and the ids of all tools that they found.
#[derive(Default)]
pub(super) struct EarlierSearches {
    /// The results by the words of their query.
    results: HashMap<String, Vec<FoundTool>>,
    found_ids: BTreeSet<String>,
}

impl EarlierSearches {
    /// Returns the result of an earlier search for the same words.
    pub(super) fn result(&self, query: &Query) -> Option<Vec<FoundTool>> {
        self.results.get(&query.words()).cloned()
    }

    /// Stores the result of a search. A search without a result is not stored, because the same words may find tools
    /// with another cutoff.
    pub(super) fn remember(&mut self, query: &Query, found: Vec<FoundTool>) {
        if !found.is_empty() {
            self.add_found(found.iter().map(|tool| tool.hit.id.as_str()));
            self.results.insert(query.words(), found);
        }
    }

    /// Adds the ids of found tools.
    pub(super) fn add_found<'i>(&mut self, ids: impl Iterator<Item = &'i str>) {
        self.found_ids.extend(ids.map(str::to_owned));
    }

    /// Returns whether all these tools were found before.
    pub(super) fn has_found(&self, tools: &[FoundTool]) -> bool {
        tools.iter().all(|tool| self.found_ids.contains(&tool.hit.id))
    }

    /// Forgets the results, because the tools changed. The same search runs again.
    pub(super) fn forget_results(&mut self) {
        self.results.clear();
    }
}
