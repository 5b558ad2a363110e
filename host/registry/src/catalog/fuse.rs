//! Fusing the rankings of the word index and of an embedding model.

use std::collections::HashMap;

use super::index::Catalog;
use super::query::Query;
use super::rank::Hit;

/// The constant `k` of reciprocal rank fusion, with its published value.
const RANK_OFFSET: f32 = 60.0;

/// The number of hits that each ranking contributes for each requested hit.
const POOL_FACTOR: usize = 4;

/// An index that ranks tools by meaning, such as one of embeddings.
///
/// Its ranking is fused with that of the word index by rank, so its scores need no common scale.
pub trait SemanticIndex: Send + Sync {
    /// Returns the ids of the tools nearest in meaning, best first, at most `hits_max`.
    fn nearest(&self, intent: &str, hits_max: usize) -> Vec<String>;
}

impl Catalog {
    /// Searches by words and by meaning, and fuses both rankings by reciprocal rank fusion.
    ///
    /// Tools that the query names come first. `may_use` applies to both rankings.
    #[must_use]
    pub fn search_with(&self, query: &Query, semantic: &dyn SemanticIndex, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        let pool = query.hits_max.saturating_mul(POOL_FACTOR);
        let by_words = self.search(&query.clone().with_hits_max(pool), &may_use);
        let mut by_meaning = semantic.nearest(&query.intent, pool);
        by_meaning.truncate(pool);
        by_meaning.retain(|id| may_use(id));
        let mut scores: HashMap<String, f32> = HashMap::new();
        for ranking in [by_words.iter().map(|hit| hit.id.clone()).collect(), by_meaning] {
            add_ranking(&mut scores, ranking);
        }
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .filter_map(|(id, score)| {
                let name = self.slot(self.with_id(&id)?)?.name.to_string();
                let is_exact = by_words.iter().any(|hit| hit.is_exact && hit.id == id);
                Some(Hit {
                    id,
                    name,
                    score,
                    is_exact,
                })
            })
            .collect();
        hits.sort_by(|a, b| {
            let by_score = (b.is_exact, b.score).partial_cmp(&(a.is_exact, a.score));
            by_score
                .unwrap_or(std::cmp::Ordering::Equal)
                .then_with(|| (&a.name, &a.id).cmp(&(&b.name, &b.id)))
        });
        hits.truncate(query.hits_max);
        hits
    }
}

fn add_ranking(scores: &mut HashMap<String, f32>, ranking: Vec<String>) {
    for (rank, id) in ranking.into_iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a rank is small")]
        let score = 1.0 / (RANK_OFFSET + rank as f32 + 1.0);
        *scores.entry(id).or_default() += score;
    }
}
