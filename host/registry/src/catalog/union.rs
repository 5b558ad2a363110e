//! Several catalogs that are searched as one.

use super::index::Catalog;
use super::query::Query;
use super::rank::{self, Hit};
use super::ranking_parameters::RankingParameters;
use super::totals::Totals;

/// Several catalogs that are searched as one: their hits are ranked together, and the rarity of a word is computed over all of them.
///
/// The hits are the same as those of one catalog with all the tools. Each tool must be in only one of the catalogs.
///
/// ```
/// use toolwit_registry::{Catalog, CatalogUnion, Document, Query};
///
/// let (mut plugins, mut native) = (Catalog::new(), Catalog::new());
/// plugins.put("web.wasm", [Document::new("web#scrape", "scrape_page", "Scrapes a website and returns its text")]);
/// native.put("native", [Document::new("native#remember", "remember", "Stores a note")]);
/// let hits = CatalogUnion::new([&plugins, &native]).search(&Query::new("scraping websites"), |_| true);
/// assert_eq!(hits[0].id, "web#scrape");
/// ```
#[derive(Clone, Debug)]
pub struct CatalogUnion<'c> {
    catalogs: Vec<&'c Catalog>,
    totals: Totals,
}

impl<'c> CatalogUnion<'c> {
    /// Joins catalogs.
    #[must_use]
    pub fn new(catalogs: impl IntoIterator<Item = &'c Catalog>) -> Self {
        let catalogs: Vec<_> = catalogs.into_iter().filter(|catalog| !catalog.is_empty()).collect();
        let mut totals = Totals::default();
        for catalog in &catalogs {
            totals.add(catalog.totals());
        }
        Self { catalogs, totals }
    }

    /// Searches the tools whose id `may_use` accepts, best first.
    ///
    /// Tools that the query names come first, and the cutoff does not omit them. Among these and among the others, broken tools
    /// come last. Ties are sorted by name. A tool that has [entry tools](crate::Document::entry_tools) is found through an
    /// entry tool, if `may_use` accepts both.
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        if query.hits_max == 0 || self.catalogs.is_empty() {
            return Vec::new();
        }
        rank::search(self, query, &may_use)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'c Catalog> {
        self.catalogs.iter().copied()
    }

    /// Returns the ranking parameters, which are the same in all catalogs.
    pub(super) fn parameters(&self) -> &'static RankingParameters {
        RankingParameters::get()
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the number of tools that contain a word with this stem.
    pub(super) fn tool_count_with(&self, stem: &str) -> usize {
        self.catalogs.iter().map(|catalog| catalog.postings(stem).len()).sum()
    }

    /// Returns the inverse document frequency of a word that `tool_count` tools contain. It is never negative, because 1 is added
    /// before the logarithm.
    #[allow(clippy::cast_precision_loss, reason = "a logarithm of counts needs no precision")]
    pub(super) fn idf(&self, tool_count: usize) -> f32 {
        let (total, with_word) = (self.totals.tool_count as f32, tool_count as f32);
        (1.0 + (total - with_word + 0.5) / (with_word + 0.5)).ln()
    }
}
