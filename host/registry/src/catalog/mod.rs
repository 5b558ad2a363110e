//! Search over tools: fielded BM25 (BM25F) with an inverted index in memory, fused with embeddings if there is a model for
//! them.
//!
//! A tool is a [`Document`] of a few short fields. The weight of a word depends on its field and its rarity. The ranking
//! signals of a tool, such as its health, multiply its score, so that a tool which does not match stays at zero. Tools are added
//! and removed per component file.

mod accumulator;
mod document;
mod embedding;
mod index;
mod query;
mod rank;
mod ranking_parameters;
mod ranking_signals;
mod scoring;
mod similarity;
mod stop_words;
mod terms;
mod text;
mod totals;
mod union;

#[cfg(test)]
mod tests;

pub use document::{Document, IndexedTool, TermExtractor, Terms};
pub use embedding::{Embedding, EmbeddingModel};
pub use index::Catalog;
pub use query::{Cutoff, HITS_DEFAULT, Query};
pub use rank::{Hit, InnerTool};
pub use ranking_signals::{HealthSignal, RankingSignals};
pub(crate) use text::words;
pub use union::CatalogUnion;
