//! The earlier searches of a conversation, so that a model does not repeat them.

use std::collections::{BTreeSet, HashMap};

use super::FoundTool;
use toolwit_registry::Query;

/// The results of the earlier searches of a conversation, and the ids of the found tools.
#[derive(Default)]
pub(super) struct EarlierSearches {
    /// The results by the words of their query.
    results: HashMap<String, Vec<FoundTool>>,
    /// The ids of all tools that a search found, even if the results were removed.
    found_ids: BTreeSet<String>,
}

impl EarlierSearches {
    /// Returns the result of an earlier search for the same words.
    pub(super) fn result(&self, query: &Query) -> Option<Vec<FoundTool>> {
        self.results.get(&query.words()).cloned()
    }

    /// Stores the result of a search. An empty result is not stored, because a search for the same words with another
    /// cutoff may find tools.
    pub(super) fn store(&mut self, query: &Query, found: Vec<FoundTool>) {
        if !found.is_empty() {
            self.add_found_ids(found.iter().map(|tool| tool.hit.id.as_str()));
            self.results.insert(query.words(), found);
        }
    }

    /// Stores the ids of found tools.
    pub(super) fn add_found_ids<'i>(&mut self, ids: impl Iterator<Item = &'i str>) {
        self.found_ids.extend(ids.map(str::to_owned));
    }

    /// Returns whether all these tools were found before.
    pub(super) fn has_found(&self, tools: &[FoundTool]) -> bool {
        tools.iter().all(|tool| self.found_ids.contains(&tool.hit.id))
    }

    /// Removes the stored results, so that a repeated search runs again. Called when the tools have changed.
    pub(super) fn clear_results(&mut self) {
        self.results.clear();
    }
}
