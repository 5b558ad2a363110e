//! Addition of the similarity in meaning to the word scores.

use super::accumulator::Accumulator;
use super::embedding::Embedding;
use super::index::Catalog;
use super::query::Query;
use super::ranking_parameters::RankingParameters;
use super::union::CatalogUnion;

/// Adds a score for the similarity in meaning between each tool and the query to the tool's score. Returns `false` if no tool is
/// similar, for example because no embedding model knows a word of the query.
///
/// The scales of similarities and word scores are not comparable. So the similarities are scaled: the greatest one in all catalogs
/// gives [`RankingParameters::similarity_weight`] times the greatest word score. The more of the query a tool covers by its words,
/// the less the similarities count, by up to [`RankingParameters::similarity_discount`]: a query in the words of a tool needs no
/// other evidence, and similar meanings would only add noise. A word score of `confident_score` covers the query.
pub(super) fn add_similarities(
    catalogs: &CatalogUnion<'_>,
    query: &Query,
    confident_score: f32,
    accumulators: &mut [Vec<Accumulator>],
) -> bool {
    let similarities: Vec<_> = catalogs.iter().map(|catalog| catalog.similarities(query)).collect();
    let similarity_max = similarities.iter().flatten().copied().fold(0.0, f32::max);
    if similarity_max <= 0.0 {
        return false;
    }
    let word_scores = accumulators.iter().flatten().map(|accumulator| accumulator.word_score);
    let word_score_max = word_scores.fold(0.0, f32::max);
    // If no tool has a word of the query, any scale gives the same order.
    let scale = if word_score_max > 0.0 { word_score_max } else { 1.0 };
    let parameters = catalogs.parameters();
    let confidence = (word_score_max / confident_score).min(1.0);
    let weight = parameters.similarity_weight * (1.0 - parameters.similarity_discount * confidence);
    let score_per_similarity = weight * scale / similarity_max;
    for (accumulators, similarities) in accumulators.iter_mut().zip(&similarities) {
        for (accumulator, similarity) in accumulators.iter_mut().zip(similarities) {
            accumulator.similarity = similarity.max(0.0);
            accumulator.score += score_per_similarity * accumulator.similarity;
        }
    }
    true
}

impl Catalog {
    /// Returns the similarity of each tool to a query, by slot. The list is empty if there is no embedding model, or if the
    /// model knows no word of the query.
    fn similarities(&self, query: &Query) -> Vec<f32> {
        let texts = [
            (query.intent.as_str(), 1.0),
            (&query.task, RankingParameters::get().task_weight),
        ];
        let model = self.embedding_model();
        let embedding = model.and_then(|model| Embedding::of_weighted(&**model, texts));
        embedding.map_or_else(Vec::new, |embedding| self.embeddings().similarities(&embedding))
    }
}
