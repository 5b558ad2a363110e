//! The words of a query, with their weights.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::query::Query;
use super::ranking_parameters::RankingParameters;
use super::text::{self, CachedStemmer};
use super::union::CatalogUnion;

/// Maximum number of tokenised words of the intent, and of the task.
const INTENT_WORDS_MAX: usize = 256;

/// Maximum number of earlier messages that are used.
const RECENT_MESSAGES_MAX: usize = 3;

/// Maximum number of tokenised words of each earlier message.
const RECENT_WORDS_MAX: usize = 48;

/// Maximum number of words of all earlier messages that are looked up.
const RECENT_TERMS_MAX: usize = 16;

/// Maximum number of words of the intent and the task that are looked up: those with the greatest weights. Each of them has a bit
/// of a `u32`.
const INTENT_TERMS_MAX: usize = 32;

/// For one word of the query, the maximum number of longer words in names that begin with the word, and of those that end with it.
/// A prefix or suffix of more words is not specific.
const LONGER_WORDS_MAX: usize = 16;

/// A stem that a search looks up in the index.
#[derive(Clone, Debug)]
pub(super) struct WeightedTerm {
    pub(super) stem: Arc<str>,
    pub(super) weight: f32,
    /// The bit of the word of the intent or the task from which the stem comes; 0 for words of earlier messages.
    pub(super) bit: u32,
}

/// The stems that a search looks up for a query.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryTerms {
    pub(super) terms: Vec<WeightedTerm>,
    /// The number of words of the intent and the task that are looked up.
    pub(super) word_count: u32,
    /// The bits of the words of the intent and the task that are not fillers.
    pub(super) content_bits: u32,
    /// The sum of the greatest weights among the words of the intent and the task, including words that no tool has. At most
    /// [`RankingParameters::confident_word_count`] weights are summed.
    top_weight_sum: f32,
}

/// A word of a query.
struct QueryWord {
    stem: Arc<str>,
    is_filler: bool,
    /// The number of tools that have it.
    tool_count: usize,
    weight: f32,
}

impl QueryTerms {
    /// Selects the words of a query and weighs them by their rarity in the catalogs.
    pub(super) fn of(query: &Query, catalogs: &CatalogUnion<'_>) -> Self {
        let parameters = catalogs.parameters();
        let mut stemmer = CachedStemmer::default();
        let mut words = weigh(
            [
                (text::tokens(&query.intent, &mut stemmer, INTENT_WORDS_MAX), 1.0),
                (
                    text::tokens(&query.task, &mut stemmer, INTENT_WORDS_MAX),
                    parameters.task_weight,
                ),
            ],
            catalogs,
        );
        let top_weight_sum = words
            .iter()
            .take(parameters.confident_word_count)
            .map(|word| word.weight)
            .sum();
        // A word that no tool has, and that is too short to be a prefix or suffix, cannot match.
        words.retain(|word| word.tool_count > 0 || word.stem.len() >= parameters.affix_bytes_min);
        words.truncate(INTENT_TERMS_MAX);
        let mut terms = Self {
            word_count: u32::try_from(words.len()).unwrap_or(u32::MAX),
            top_weight_sum,
            ..Self::default()
        };
        for (word, bit) in words.iter().zip((0..).map(|index| 1_u32 << index)) {
            if !word.is_filler {
                terms.content_bits |= bit;
            }
            if word.tool_count > 0 {
                terms.push(word.stem.clone(), word.weight, bit);
            }
            if word.stem.len() >= parameters.affix_bytes_min {
                let weight = if word.tool_count > 0 { word.weight } else { 0.0 };
                terms.add_longer_words(&word.stem, weight, bit, catalogs);
            }
        }
        let recent = query.recent.iter().rev().take(RECENT_MESSAGES_MAX);
        let recent = recent.map(|message| {
            (
                text::tokens(message, &mut stemmer, RECENT_WORDS_MAX),
                parameters.context_weight,
            )
        });
        terms.add_context(weigh(recent.collect::<Vec<_>>(), catalogs));
        terms
    }

    /// Returns the word score of a tool that covers the query by its words.
    pub(super) fn confident_score(&self) -> f32 {
        let parameters = RankingParameters::get();
        (self.top_weight_sum * (parameters.k1 + 1.0)).max(f32::MIN_POSITIVE)
    }

    fn push(&mut self, stem: Arc<str>, weight: f32, bit: u32) {
        self.terms.push(WeightedTerm { stem, weight, bit });
    }

    /// Adds the longer words in names that begin or end with the word `affix`. `weight` is the weight of `affix`, or 0 if no tool
    /// has this word.
    ///
    /// The weight of a longer word is `min(idf, max(weight, idf / 2))`, multiplied by [`RankingParameters::affix_weight`]. `idf` is
    /// the inverse document frequency of the longer word. So a frequent `affix` limits the weights of rare longer words.
    fn add_longer_words(&mut self, affix: &Arc<str>, weight: f32, bit: u32, catalogs: &CatalogUnion<'_>) {
        let parameters = catalogs.parameters();
        for stem in longer_words(catalogs, affix) {
            let idf = catalogs.idf(catalogs.tool_count_with(&stem));
            self.push(stem, idf.min(weight.max(idf * 0.5)) * parameters.affix_weight, bit);
        }
    }

    /// Adds the words of earlier messages that are not among the terms already.
    fn add_context(&mut self, words: Vec<QueryWord>) {
        for word in words
            .into_iter()
            .filter(|word| word.tool_count > 0)
            .take(RECENT_TERMS_MAX)
        {
            if !self.terms.iter().any(|other| other.stem == word.stem) {
                self.push(word.stem, word.weight, 0);
            }
        }
    }
}

/// Weighs the words of texts and sorts them by weight, the greatest first. Each text has a factor for the weights of its words. A
/// word of several texts has the factor of the first of these texts.
fn weigh(texts: impl IntoIterator<Item = (Vec<text::Token>, f32)>, catalogs: &CatalogUnion<'_>) -> Vec<QueryWord> {
    let parameters: &RankingParameters = catalogs.parameters();
    let mut stems: BTreeMap<Arc<str>, (bool, f32)> = BTreeMap::new();
    for (tokens, factor) in texts {
        for token in tokens {
            stems.entry(token.stem).or_insert((token.is_filler, factor));
        }
    }
    let words = stems.into_iter().map(|(stem, (is_filler, factor))| {
        let tool_count = catalogs.tool_count_with(&stem);
        let filler_factor = if is_filler { parameters.filler_weight } else { 1.0 };
        QueryWord {
            weight: catalogs.idf(tool_count) * factor * filler_factor,
            stem,
            is_filler,
            tool_count,
        }
    });
    let mut words: Vec<_> = words.collect();
    words.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.stem.cmp(&b.stem)));
    words
}

/// Returns the longer words in names that begin with `affix`, and those that end with it.
fn longer_words(catalogs: &CatalogUnion<'_>, affix: &str) -> Vec<Arc<str>> {
    let mut words_with_prefix = BTreeSet::new();
    let mut reversed_words_with_suffix = BTreeSet::new();
    for catalog in catalogs.iter() {
        words_with_prefix.extend(catalog.name_words_with_prefix(affix).take(LONGER_WORDS_MAX));
        reversed_words_with_suffix.extend(catalog.reversed_name_words_with_suffix(affix).take(LONGER_WORDS_MAX));
    }
    let words_with_prefix = words_with_prefix.into_iter().take(LONGER_WORDS_MAX).map(Arc::from);
    let words_with_suffix = reversed_words_with_suffix
        .into_iter()
        .take(LONGER_WORDS_MAX)
        .map(|reversed: &str| Arc::<str>::from(reversed.chars().rev().collect::<String>()));
    words_with_prefix.chain(words_with_suffix).collect()
}
