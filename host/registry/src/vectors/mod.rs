//! Static word vectors: an embedding model that consists of two files and does not run a neural network.
//!
//! `matrix` reads the vectors. `vocabulary` reads the tokenizer, which maps each piece of a word to a row of the matrix. `files`
//! finds both files and stores them in a directory. The files are untrusted input.

mod files;
mod matrix;
#[cfg(test)]
mod tests;
mod vocabulary;

use self::matrix::Matrix;
use self::vocabulary::Vocabulary;
use crate::catalog::{EmbeddingModel, words};

pub use files::{VectorDirectory, VectorFiles};

/// Maximum number of words in an embedded text. Further words are ignored.
const WORDS_MAX: usize = 192;

/// An embedding model of static word vectors: the vector of a text is the sum of the vectors of its words' pieces.
///
/// ```no_run
/// use toolwit_registry::VectorDirectory;
///
/// # fn example() -> Result<(), toolwit_core::Error> {
/// if let Some(vectors) = VectorDirectory::new("/var/lib/assistant/vectors").open()? {
///     println!("{} vectors with {} components", vectors.count(), vectors.width());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WordVectors {
    matrix: Matrix,
    vocabulary: Vocabulary,
}

impl WordVectors {
    /// Returns the number of vectors.
    #[must_use]
    pub fn count(&self) -> usize {
        self.matrix.row_count()
    }

    /// Returns the number of components of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.matrix.column_count()
    }
}

impl EmbeddingModel for WordVectors {
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0; self.width()];
        let mut has_vector = false;
        for word in words(text).take(WORDS_MAX) {
            for row in self.vocabulary.piece_rows(&word) {
                self.matrix.add_row(row, &mut sum);
                has_vector = true;
            }
        }
        has_vector.then_some(sum)
    }
}
