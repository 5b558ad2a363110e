//! Search over tools: fielded BM25 (BM25F) with an inverted index in memory, fused with embeddings if there is a model for
//! them.
//!
//! A tool is a [`Document`] of a few short fields. The weight of a word depends on its field and its rarity. The ranking
//! signals of a tool, such as its health, multiply its score, so that a tool which does not match stays at zero.
//!
//! The tools of one source are added and removed together. A source is a component file, or a single native tool, facade or tool
//! of a server. The tools inside a facade belong to the source of the facade.

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
