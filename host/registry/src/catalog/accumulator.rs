//! The evidence for a tool that a search accumulates.

use super::ranking_parameters::RankingParameters;

/// The accumulated evidence for a tool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accumulator {
    /// The sum of `word_score` and, with an embedding model, the score of its meaning.
    pub(super) score: f32,
    /// The score of its words.
    pub(super) word_score: f32,
    /// The similarity of its meaning to that of the query; 0 without an embedding model.
    pub(super) similarity: f32,
    /// The words of the intent and the task that the tool has, as a bit set.
    pub(super) covered_words: u32,
}

impl Accumulator {
    /// Returns whether the tool has a word of the intent or the task, or a similar meaning.
    pub(super) fn is_match(&self) -> bool {
        self.covered_words != 0 || self.is_similar()
    }

    /// Returns whether the meaning is similar enough for a hit without a word in common.
    pub(super) fn is_similar(&self) -> bool {
        self.similarity >= RankingParameters::get().similarity_min
    }

    /// Combines the evidence for an entry tool with that for the tool behind it.
    pub(super) fn with_inner(&self, inner: &Self) -> Self {
        let parameters = RankingParameters::get();
        let combined = |own: f32, inner: f32| {
            let inner = inner * parameters.lead_weight;
            own.max(inner) + own.min(inner) * parameters.lead_overlap_weight
        };
        Self {
            score: combined(self.score, inner.score),
            word_score: combined(self.word_score, inner.word_score),
            similarity: self.similarity.max(inner.similarity),
            covered_words: self.covered_words | inner.covered_words,
        }
    }
}
