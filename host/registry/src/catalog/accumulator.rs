//! The scores of a tool that a search accumulates.

use super::ranking_parameters::RankingParameters;

/// The accumulated scores of a tool for one query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accumulator {
    /// `word_score` plus, with an embedding model, the score for its similarity in meaning.
    pub(super) score: f32,
    /// The BM25F score of its words.
    pub(super) word_score: f32,
    /// The similarity of its meaning to that of the query; 0 without an embedding model.
    pub(super) similarity: f32,
    /// The words of the intent and the task that the tool has, as a set of [`WeightedTerm::bit`](super::terms::WeightedTerm::bit)s.
    pub(super) covered_words: u32,
}

impl Accumulator {
    /// Returns whether the tool has a word of the intent or the task, or a similar meaning.
    pub(super) fn is_match(&self) -> bool {
        self.covered_words != 0 || self.is_similar()
    }

    /// Returns whether the meaning is similar enough that the tool is a hit without a word of the query.
    pub(super) fn is_similar(&self) -> bool {
        self.similarity >= RankingParameters::get().similarity_min
    }

    /// Combines the scores of an entry tool with those of a tool behind it.
    pub(super) fn with_inner(&self, inner: &Self) -> Self {
        let parameters = RankingParameters::get();
        let combined = |entry_score: f32, inner_score: f32| {
            let inner_score = inner_score * parameters.inner_weight;
            entry_score.max(inner_score) + entry_score.min(inner_score) * parameters.smaller_score_weight
        };
        Self {
            score: combined(self.score, inner.score),
            word_score: combined(self.word_score, inner.word_score),
            similarity: self.similarity.max(inner.similarity),
            covered_words: self.covered_words | inner.covered_words,
        }
    }
}
