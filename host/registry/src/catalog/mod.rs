//! Finding tools by what somebody wants: fielded BM25 over an inverted index in memory.
//!
//! A tool is a [`Document`] of a few short fields. A word counts by the field it stands in and by how rare it is; what is
//! said elsewhere about a tool (health, quality, use) multiplies the score, so that a tool which does not match stays at
//! zero. The index changes file by file while it is being searched by others.

mod boost;
mod document;
mod fuse;
mod index;
mod query;
mod rank;
mod rules;
mod stop_words;
mod text;

#[cfg(test)]
mod tests;

pub use boost::{HealthBoost, RankingSignals};
pub use document::{Document, IndexedTool, TermExtractor, Terms};
pub use fuse::SemanticIndex;
pub use index::Catalog;
pub use query::{Cutoff, HITS_DEFAULT, Query};
pub use rank::Hit;
