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
    /// The usual number of words. [`Totals::mean_length`](super::totals::Totals::mean_length) averages it with the actual numbers,
    /// which matters for fields that few tools have.
    pub(super) words_usual: f32,
    /// The maximum number of words that are indexed: listing many words must not improve the rank.
    pub(super) words_max: usize,
}

/// The minimum score of a hit, as a share of the best score. The share is higher for a search by words and meaning than for a
/// search by words only, because the similarities in meaning of all tools differ less than their word scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreShareMin {
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
    /// The weight of a word of the query that is a prefix or suffix of a longer word in a name: `news` in `newsroom`.
    pub(super) affix_weight: f32,
    /// The minimum length of this prefix or suffix, in bytes.
    pub(super) affix_bytes_min: usize,
    /// The bonus, as a fraction of the score, of a tool that matches all words of the intent and the task. The bonus of other
    /// tools is proportional to the number of matched words.
    pub(super) coverage_bonus: f32,
    /// The factor of an inner tool's score before it is combined with the score of an entry tool.
    pub(super) inner_weight: f32,
    /// The weight of the smaller of the two scores of an entry tool and an inner tool. The greater score counts fully.
    pub(super) smaller_score_weight: f32,
    /// The score for the most similar meaning, relative to the best word score.
    pub(super) similarity_weight: f32,
    /// The share of `similarity_weight` that a query loses whose words a tool covers completely.
    pub(super) similarity_discount: f32,
    /// The minimum similarity of a hit without a word of the query.
    pub(super) similarity_min: f32,
    /// The minimum similarity of a hit that needs no minimum confidence under [`Cutoff::Confident`](super::Cutoff::Confident).
    pub(super) confident_similarity_min: f32,
    /// The minimum score share of a hit under [`Cutoff::Relative`](super::Cutoff::Relative).
    pub(super) score_share_min: ScoreShareMin,
    /// The minimum score share of a hit under [`Cutoff::Confident`](super::Cutoff::Confident).
    pub(super) confident_score_share_min: ScoreShareMin,
    /// A hit that matches this number of words has a confidence of about 1, if they are the words with the greatest weights. Not
    /// all words are required, because long messages have many other words.
    pub(super) confident_word_count: usize,
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
    affix_weight: 0.3,
    affix_bytes_min: 4,
    coverage_bonus: 0.5,
    inner_weight: 0.9,
    smaller_score_weight: 0.3,
    similarity_weight: 1.0,
    similarity_discount: 0.8,
    similarity_min: 0.2,
    confident_similarity_min: 0.8,
    score_share_min: ScoreShareMin {
        words: 0.3,
        words_and_meaning: 0.45,
    },
    confident_score_share_min: ScoreShareMin {
        words: 0.5,
        words_and_meaning: 0.6,
    },
    confident_word_count: 4,
    confidence_min: 0.1,
};
