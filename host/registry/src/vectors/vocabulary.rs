//! The vocabulary of a tokenizer file: the words and pieces of words that have a vector.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

/// The mark at the beginning of a piece that starts a word.
const WORD_START: &str = "▁";

/// Maximum number of pieces. Tokenizers of language models have at most about 260,000.
const PIECES_MAX: usize = 1 << 19;

/// Maximum length of a piece, in bytes. Longer pieces are ignored.
const PIECE_BYTES_MAX: usize = 48;

/// The pieces of a tokenizer, with the row of each piece in the matrix.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pieces: HashMap<Box<str>, u32>,
}

#[derive(serde::Deserialize)]
struct TokenizerFile {
    model: TokenizerModel,
}

#[derive(serde::Deserialize)]
struct TokenizerModel {
    #[serde(rename = "type")]
    model_type: String,
    #[serde(rename = "vocab")]
    vocabulary: Pieces,
}

/// The row of each piece in the matrix. Deserialization fails for more than [`PIECES_MAX`] pieces.
struct Pieces(HashMap<Box<str>, u32>);

impl Vocabulary {
    /// Parses a tokenizer file in the format of Hugging Face, for a matrix with `row_count` rows.
    ///
    /// # Errors
    /// The reason why the file cannot be used, as a phrase that follows the name of the file in an error.
    pub(super) fn parse(json: &[u8], row_count: usize) -> Result<Self, String> {
        let file: TokenizerFile = serde_json::from_slice(json)
            .map_err(|error| format!("it is not a tokenizer with a vocabulary: {error}"))?;
        let Pieces(mut pieces) = file.model.vocabulary;
        let is_word_start = |piece: &str| piece.len() > WORD_START.len() && piece.starts_with(WORD_START);
        if file.model.model_type != "BPE" || !pieces.keys().any(|piece| is_word_start(piece)) {
            let model_type = file.model.model_type;
            return Err(format!(
                "its model `{model_type}` is not supported; the model must be `BPE`, with `{WORD_START}` at the beginning \
                 of words"
            ));
        }
        if let Some(row) = pieces.values().find(|row| **row as usize >= row_count) {
            return Err(format!(
                "it does not belong to the vectors: a piece has the vector number {row}, but there are {row_count} vectors"
            ));
        }
        // A piece that is only the mark contains no character of a word.
        pieces.retain(|piece, _| piece.len() <= PIECE_BYTES_MAX && **piece != *WORD_START);
        Ok(Self { pieces })
    }

    /// Splits a word into pieces and returns the row of each piece. Takes the longest piece at the beginning of the word, then
    /// continues after this piece. Skips a character at which no piece begins.
    ///
    /// This is not the algorithm of the tokenizer, which applies merges in their order. For a frequent word, both algorithms
    /// return the same single piece; for other words, they differ little.
    pub(super) fn piece_rows(&self, word: &str) -> Vec<usize> {
        let marked = format!("{WORD_START}{word}");
        let mut rows = Vec::new();
        let mut remaining = marked.as_str();
        while let Some(first_char) = remaining.chars().next() {
            let (length, row) = self.longest_piece(remaining).unzip();
            rows.extend(row);
            remaining = &remaining[length.unwrap_or(first_char.len_utf8())..];
        }
        rows
    }

    /// Returns the length in bytes and the row of the longest piece at the beginning of a text. Returns `None` if the text does
    /// not begin with a piece.
    fn longest_piece(&self, text: &str) -> Option<(usize, usize)> {
        let lengths = (1..=text.floor_char_boundary(PIECE_BYTES_MAX)).rev();
        let mut lengths = lengths.filter(|length| text.is_char_boundary(*length));
        lengths.find_map(|length| Some((length, *self.pieces.get(&text[..length])? as usize)))
    }
}

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PiecesVisitor)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Pieces;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that maps each piece to a number")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pieces, A::Error> {
        let mut pieces = HashMap::new();
        while let Some((piece, row)) = map.next_entry()? {
            pieces.insert(piece, row);
            if pieces.len() > PIECES_MAX {
                return Err(A::Error::custom(format_args!("more than {PIECES_MAX} pieces")));
            }
        }
        Ok(Pieces(pieces))
    }
}
