//! Fusing the scores of words with the similarity in meaning.

use super::accumulator::Accumulator;
use super::embedding::Embedding;
use super::index::Catalog;
use super::query::Query;
use super::rules::Rules;
use super::union::CatalogUnion;

/// Adds the similarity of each tool's meaning with that of the query to the scores of its words. Returns whether any of the
/// catalogs has an embedding model that knows a word of the query.
///
/// Score and similarity are each relative to their greatest value over all catalogs, because their scales are not
/// comparable.
pub(super) fn fuse(catalogs: &CatalogUnion<'_>, query: &Query, accumulators: &mut [Vec<Accumulator>]) -> bool {
    let similarities: Vec<_> = catalogs.iter().map(|catalog| catalog.similarities(query)).collect();
    let similarity_max = similarities.iter().flatten().copied().fold(0.0, f32::max);
    if similarity_max <= 0.0 {
        return false;
    }
    let all = accumulators.iter().flatten();
    let word_score_max = all.map(|accumulator| accumulator.word_score).fold(0.0, f32::max);
    // Without a word in common, the scale of the scores is arbitrary.
    let scale = if word_score_max > 0.0 { word_score_max } else { 1.0 };
    let weight = catalogs.rules().similarity_weight * scale / similarity_max;
    for (accumulators, similarities) in accumulators.iter_mut().zip(&similarities) {
        for (accumulator, similarity) in accumulators.iter_mut().zip(similarities) {
            accumulator.similarity = similarity.max(0.0);
            accumulator.score += weight * accumulator.similarity;
        }
    }
    true
}

impl Catalog {
    /// Returns the similarity of each tool with a query, by slot; an empty list without an embedding model.
    fn similarities(&self, query: &Query) -> Vec<f32> {
        let texts = [(query.intent.as_str(), 1.0), (&query.task, Rules::get().task_weight)];
        let model = self.embedding_model();
        let query = model.and_then(|model| Embedding::of_weighted(&**model, texts));
        query.map_or_else(Vec::new, |query| self.embeddings().similarities(&query))
    }
}
