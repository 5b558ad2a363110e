//! The word vectors of the search, in the user's data directory.

use super::configuration::data_path;
use toolwit::ToolwitBuilder;
use toolwit::registry::VectorDirectory;

/// Returns the directory of the word vectors, or `None` without a home directory.
pub(crate) fn vector_directory() -> Option<VectorDirectory> {
    data_path("vectors").map(VectorDirectory::new)
}

/// Adds the word vectors to a host, if there are any, so that it searches by meaning. Logs a warning if the vectors
/// cannot be used.
pub(crate) fn with_word_vectors(builder: ToolwitBuilder) -> ToolwitBuilder {
    match vector_directory().map(|directory| directory.open()) {
        Some(Ok(Some(vectors))) => builder.embedding_model(vectors),
        Some(Err(error)) => {
            tracing::warn!(%error, "the search compares words only");
            builder
        }
        Some(Ok(None)) | None => builder,
    }
}
