//! What is searched for.

/// Hits that one search gives unless it asks for another number.
pub const HITS_DEFAULT: usize = 5;

/// How weak hits are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cutoff {
    /// Hits far below the best one, or that answer too little of what was asked, are left out.
    #[default]
    Relative,
    /// Every hit is kept, as for a person who pages through them.
    None,
}

/// A search: what is wanted, and what was said before.
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
    /// What is wanted, in the words of a user or a model.
    pub intent: String,
    /// What the user said before. It tells equals apart and brings nothing by itself.
    pub recent: Vec<String>,
    /// The most hits to return.
    pub hits_max: usize,
    /// How weak hits are treated.
    pub cutoff: Cutoff,
}

impl Query {
    /// Searches for what the words of `intent` say.
    #[must_use]
    pub fn new(intent: impl Into<String>) -> Self {
        Self {
            intent: intent.into(),
            recent: Vec::new(),
            hits_max: HITS_DEFAULT,
            cutoff: Cutoff::default(),
        }
    }

    /// Adds the user's last messages as context.
    #[must_use]
    pub fn with_recent<T: Into<String>>(mut self, messages: impl IntoIterator<Item = T>) -> Self {
        self.recent.extend(messages.into_iter().map(Into::into));
        self
    }

    /// Asks for at most this many hits.
    #[must_use]
    pub fn hits_max(mut self, hits_max: usize) -> Self {
        self.hits_max = hits_max;
        self
    }

    /// Says how weak hits are treated.
    #[must_use]
    pub fn cutoff(mut self, cutoff: Cutoff) -> Self {
        self.cutoff = cutoff;
        self
    }
}
