//! The numbers of tools and words, from which the rarity of words and the mean lengths of fields are computed.

use super::ranking_parameters::{FIELD_COUNT, RankingParameters};

/// The mean length of a field includes this number of imaginary tools, whose field has the usual length. Without them, the mean
/// of a few tools would be accidental.
const IMAGINARY_TOOLS: f32 = 8.0;

/// The number of words in a field over all tools, and the number of tools whose field is not empty.
#[derive(Clone, Copy, Debug, Default)]
struct FieldTotal {
    word_count: u64,
    tool_count: u64,
}

/// The number of tools, and the numbers of words in their fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) tool_count: u64,
    fields: [FieldTotal; FIELD_COUNT],
}

impl Totals {
    /// Adds the totals of other tools.
    pub(super) fn add(&mut self, other: &Self) {
        self.tool_count += other.tool_count;
        for (total, other) in self.fields.iter_mut().zip(&other.fields) {
            total.word_count += other.word_count;
            total.tool_count += other.tool_count;
        }
    }

    /// Adds a tool. `lengths` are the numbers of words in its fields.
    pub(super) fn add_tool(&mut self, lengths: &[u8; FIELD_COUNT]) {
        self.apply(lengths, u64::wrapping_add);
    }

    /// Subtracts a tool that was added before.
    pub(super) fn remove_tool(&mut self, lengths: &[u8; FIELD_COUNT]) {
        self.apply(lengths, u64::wrapping_sub);
    }

    /// Adds or subtracts a tool. `operation` is the wrapping addition or subtraction.
    fn apply(&mut self, lengths: &[u8; FIELD_COUNT], operation: fn(u64, u64) -> u64) {
        self.tool_count = operation(self.tool_count, 1);
        for (total, length) in self.fields.iter_mut().zip(lengths) {
            if *length > 0 {
                total.word_count = operation(total.word_count, u64::from(*length));
                total.tool_count = operation(total.tool_count, 1);
            }
        }
    }

    /// Returns the mean number of words in a field, over the tools whose field is not empty and the [`IMAGINARY_TOOLS`].
    #[allow(clippy::cast_precision_loss, reason = "a mean needs no precision")]
    pub(super) fn mean_length(&self, field: usize) -> f32 {
        let total = self.fields[field];
        let words_usual = RankingParameters::get().fields[field].words_usual;
        (total.word_count as f32 + words_usual * IMAGINARY_TOOLS) / (total.tool_count as f32 + IMAGINARY_TOOLS)
    }
}
