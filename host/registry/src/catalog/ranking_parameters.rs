//! The parameters of the ranking.

/// The number of fields of a document.
pub(super) const FIELD_COUNT: usize = 7;

/// The index of the name among the fields.
pub(super) const NAME_FIELD: usize = 0;

/// The ranking parameters of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldParameters {
    /// The weight of a word in this field, relative to the description.
    pub(super) weight: f32,
    /// The length normalisation, from 0 to 1 (BM25's `b`).
    pub(super) b: f32,
    /// The usual number of words. It is averaged with the actual lengths, which matters for fields that few tools have.
    pub(super) words_usual: f32,
    /// The maximum number of words that are indexed: listing many words must not improve the rank.
    pub(super) words_max: usize,
}

/// The minimum share of the best score: for a search by words only, and for one by words and meaning. The latter is higher,
/// because the similarities in meaning of all tools differ less than their scores of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareMin {
    pub(super) words: f32,
    pub(super) words_and_meaning: f32,
}

/// The ranking parameters. They were tuned on three public data sets of tools and questions; see the example `search_eval`.
#[derive(Clone, Debug)]
pub(super) struct RankingParameters {
    /// The parameters of the fields: name, parameters, description, tags, category, use case, examples.
    ///
    /// A word in a name weighs most, because names are short. Parameters weigh least: queries rarely describe the input.
    pub(super) fields: [FieldParameters; FIELD_COUNT],
    /// The saturation of repeated words (BM25's `k1`).
    pub(super) k1: f32,
    /// The maximum number of counted occurrences of a word in a field.
    pub(super) repeats_max: u8,
    /// The weight of a word of the task, relative to the intent.
    pub(super) task_weight: f32,
    /// The weight of a word in an earlier message, relative to the intent.
    pub(super) context_weight: f32,
    /// The factor of the weight of a filler word.
    pub(super) filler_weight: f32,
    /// The weight of a word that is a prefix or suffix of a longer word in a name: `news` in `newsroom`.
    pub(super) part_weight: f32,
    /// The shortest such prefix or suffix, in bytes.
    pub(super) part_bytes_min: usize,
    /// The bonus, as a fraction of the score, of a tool that matches all words of the intent and the task. It is proportional
    /// for fewer words.
    pub(super) coverage_weight: f32,
    /// The weight of the score of a tool behind an entry tool in the score of the entry tool.
    pub(super) lead_weight: f32,
    /// An entry tool and a tool behind it have two scores. The greater one counts fully, the smaller one with this weight.
    pub(super) lead_overlap_weight: f32,
    /// The score for the most similar meaning, relative to the best score of words.
    pub(super) similarity_weight: f32,
    /// The similarity from which on a tool is a hit without a word in common.
    pub(super) similarity_min: f32,
    /// The similarity from which on a hit needs no minimum confidence under [`Cutoff::Confident`](super::Cutoff::Confident).
    pub(super) confident_similarity_min: f32,
    /// Hits with less than these shares of the best score are omitted.
    pub(super) relative_min: ShareMin,
    /// The same shares under [`Cutoff::Confident`](super::Cutoff::Confident).
    pub(super) confident_relative_min: ShareMin,
    /// The number of words with the greatest weights that a hit must match for a confidence of about 1. Long messages have many
    /// other words.
    pub(super) information_words: usize,
    /// Minimum confidence of a hit under [`Cutoff::Confident`](super::Cutoff::Confident).
    pub(super) confidence_min: f32,
}

impl RankingParameters {
    /// Returns the parameters of all catalogs.
    pub(super) fn get() -> &'static Self {
        &PARAMETERS
    }
}

const fn field(weight: f32, b: f32, words_usual: f32, words_max: usize) -> FieldParameters {
    FieldParameters {
        weight,
        b,
        words_usual,
        words_max,
    }
}

static PARAMETERS: RankingParameters = RankingParameters {
    fields: [
        field(3.0, 0.3, 3.0, 24),
        field(0.6, 0.75, 20.0, 128),
        field(1.0, 0.5, 12.0, 192),
        field(1.2, 0.5, 4.0, 16),
        field(0.8, 0.3, 2.0, 8),
        field(1.0, 0.75, 10.0, 64),
        field(0.8, 0.75, 20.0, 96),
    ],
    k1: 1.2,
    repeats_max: 3,
    task_weight: 0.5,
    context_weight: 0.25,
    filler_weight: 0.4,
    part_weight: 0.3,
    part_bytes_min: 4,
    coverage_weight: 0.5,
    lead_weight: 0.9,
    lead_overlap_weight: 0.3,
    similarity_weight: 1.5,
    similarity_min: 0.2,
    confident_similarity_min: 0.8,
    relative_min: ShareMin {
        words: 0.3,
        words_and_meaning: 0.45,
    },
    confident_relative_min: ShareMin {
        words: 0.5,
        words_and_meaning: 0.6,
    },
    information_words: 4,
    confidence_min: 0.1,
};
