//! The numbers of tools and words, from which the rarity of words and the usual lengths of fields follow.

use super::rules::{FIELDS, Rules};

/// The weight of a field's usual length in its mean length, as a number of tools.
const TOOLS_USUAL: f32 = 8.0;

/// The number of words in a field, over all tools that have the field.
#[derive(Clone, Copy, Debug, Default)]
struct FieldTotal {
    words: u64,
    tools: u64,
}

/// The number of tools, and of their words.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) tools: u64,
    fields: [FieldTotal; FIELDS],
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

    /// Adds or subtracts a tool, by the lengths of its fields.
    pub(super) fn count(&mut self, lengths: &[u8; FIELDS], change: fn(u64, u64) -> u64) {
        self.tools = change(self.tools, 1);
        for (total, length) in self.fields.iter_mut().zip(lengths) {
            if *length > 0 {
                total.words = change(total.words, u64::from(*length));
                total.tools = change(total.tools, 1);
            }
        }
    }

    /// Returns the mean number of words in a field, over the tools that have it.
    #[allow(clippy::cast_precision_loss, reason = "a mean needs no precision")]
    pub(super) fn mean_length(&self, field: usize) -> f32 {
        let total = self.fields[field];
        let usual = Rules::get().fields[field].words_usual;
        (total.words as f32 + usual * TOOLS_USUAL) / (total.tools as f32 + TOOLS_USUAL)
    }
}
