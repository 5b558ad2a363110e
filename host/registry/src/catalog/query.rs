//! Search queries.

use std::collections::BTreeSet;

use super::text::{self, CachedStemmer};

/// Maximum number of words that [`Query::words`] reads.
const WORDS_MAX: usize = 512;

/// The default number of hits of a search.
pub const HITS_DEFAULT: usize = 5;

/// The rule by which a search omits weak hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cutoff {
    /// Omits hits that score far below the best one. Also omits hits that match too few words of the query or only its filler
    /// words, unless their meaning is similar.
    #[default]
    Relative,
    /// Omits hits as [`Cutoff::Relative`] does but with a higher minimum score, and hits with a low confidence, unless their
    /// meaning is very similar. For a message that may not need any tool.
    Confident,
    /// Returns all hits, for example for pagination.
    None,
}

/// A search query, with the recent conversation as context.
///
/// ```
/// use toolwit_registry::{Catalog, Document, Query};
///
/// let mut catalog = Catalog::new();
/// catalog.put("web.wasm", [Document::new("web#scrape", "scrape_page", "Scrapes a website and returns its text")]);
/// let hits = catalog.search(&Query::new("scraping websites"), |_| true);
/// assert_eq!(hits[0].id, "web#scrape");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Query {
    /// The wanted capability, in the words of a user or a model.
    pub intent: String,
    /// The task for which the capability is wanted. Its words weigh less than those of the intent. Can be empty.
    pub task: String,
    /// Earlier messages of the user, oldest first. Words of the latest ones improve the rank of tools that match the intent or
    /// the task, but match no tools by themselves.
    pub recent: Vec<String>,
    /// The maximum number of hits.
    pub hits_max: usize,
    /// The rule by which the search omits weak hits.
    pub cutoff: Cutoff,
}

impl Query {
    /// Creates a query for an intent.
    #[must_use]
    pub fn new(intent: impl Into<String>) -> Self {
        Self {
            intent: intent.into(),
            hits_max: HITS_DEFAULT,
            ..Self::default()
        }
    }

    /// Sets the task for which the capability is wanted.
    #[must_use]
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.task = task.into();
        self
    }

    /// Adds earlier messages of the user as context, oldest first.
    #[must_use]
    pub fn with_recent<T: Into<String>>(mut self, messages: impl IntoIterator<Item = T>) -> Self {
        self.recent.extend(messages.into_iter().map(Into::into));
        self
    }

    /// Sets the maximum number of hits.
    #[must_use]
    pub fn with_hits_max(mut self, hits_max: usize) -> Self {
        self.hits_max = hits_max;
        self
    }

    /// Sets the rule by which the search omits weak hits.
    #[must_use]
    pub fn with_cutoff(mut self, cutoff: Cutoff) -> Self {
        self.cutoff = cutoff;
        self
    }

    /// Returns the distinct stems of the intent and the task, sorted and joined by spaces. So queries with the same words give
    /// equal texts. For a query of stop words only, returns its text in lower case instead.
    #[must_use]
    pub fn words(&self) -> String {
        let text = format!("{} {}", self.intent, self.task);
        let tokens = text::tokens(&text, &mut CachedStemmer::default(), WORDS_MAX);
        let stems: BTreeSet<_> = tokens.iter().map(|token| &*token.stem).collect();
        if stems.is_empty() {
            return text.trim().to_lowercase();
        }
        stems.into_iter().collect::<Vec<_>>().join(" ")
    }
}
