//! The numbers of tools and words, from which the rarity of words and the mean lengths of fields are computed.

use super::ranking_parameters::{FIELD_COUNT, RankingParameters};

/// The mean length of a field includes this number of imaginary tools, whose field has the usual length: the mean of few tools
/// would be accidental.
const IMAGINARY_TOOLS: f32 = 8.0;

/// The number of words in a field over all tools, and the number of tools whose field is not empty.
#[derive(Clone, Copy, Debug, Default)]
struct FieldTotal {
    words: u64,
    tools: u64,
}

/// The number of tools, and the numbers of words in their fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) tools: u64,
    fields: [FieldTotal; FIELD_COUNT],
}

impl Totals {
    /// Adds the totals of other tools.
    pub(super) fn add(&mut self, other: &Self) {
        self.tools += other.tools;
        for (total, other) in self.fields.iter_mut().zip(&other.fields) {
            total.words += other.words;
            total.tools += other.tools;
        }
    }

    /// Adds a tool, whose fields have these numbers of words.
    pub(super) fn add_tool(&mut self, lengths: &[u8; FIELD_COUNT]) {
        self.apply(lengths, u64::wrapping_add);
    }

    /// Subtracts a tool that was added before.
    pub(super) fn remove_tool(&mut self, lengths: &[u8; FIELD_COUNT]) {
        self.apply(lengths, u64::wrapping_sub);
    }

    /// Adds or subtracts a tool. `operation` is the wrapping addition or subtraction.
    fn apply(&mut self, lengths: &[u8; FIELD_COUNT], operation: fn(u64, u64) -> u64) {
        self.tools = operation(self.tools, 1);
        for (total, length) in self.fields.iter_mut().zip(lengths) {
            if *length > 0 {
                total.words = operation(total.words, u64::from(*length));
                total.tools = operation(total.tools, 1);
            }
        }
    }

    /// Returns the mean number of words in a field, over the tools whose field is not empty and the [`IMAGINARY_TOOLS`].
    #[allow(clippy::cast_precision_loss, reason = "a mean needs no precision")]
    pub(super) fn mean_length(&self, field: usize) -> f32 {
        let total = self.fields[field];
        let usual = RankingParameters::get().fields[field].words_usual;
        (total.words as f32 + usual * IMAGINARY_TOOLS) / (total.tools as f32 + IMAGINARY_TOOLS)
    }
}
