//! How words are weighed.

/// How many fields a document has.
pub(super) const FIELDS: usize = 7;

/// The place of the name among the fields.
pub(super) const NAME: usize = 0;

/// How the words of one field count.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldRule {
    /// How much a word in this field counts beside one in the description.
    pub(super) weight: f32,
    /// How much a long field is held against its words, from 0 to 1 (BM25's `b`).
    pub(super) b: f32,
    /// How many words such a field has as a rule. It counts like a few tools, so that a field which hardly any tool has
    /// does not make its own measure.
    pub(super) words_usual: f32,
    /// Words beyond this are not read, so that nobody gains by listing the dictionary.
    pub(super) words_max: usize,
}

/// How words are weighed. The numbers were chosen on three public sets of tools and questions; see the example
/// `search_eval`.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Name, parameters, description, tags, category, use case, examples.
    ///
    /// Names are short and chosen with care, so that a word in one says most. Parameters tell what goes in, which is
    /// seldom what is wanted.
    pub(super) fields: [FieldRule; FIELDS],
    /// How fast repeating a word stops to help (BM25's `k1`).
    pub(super) k1: f32,
    /// The most repetitions of a word in one field that count.
    pub(super) repeats_max: u8,
    /// What a word of an earlier message counts beside one of the intent.
    pub(super) context_weight: f32,
    /// What a word counts that is only a way of asking.
    pub(super) filler_weight: f32,
    /// What a word counts that is the beginning or the end of a longer word in a name: `news` in `newsroom`.
    pub(super) part_weight: f32,
    /// The shortest part of a longer word that is looked for, in bytes.
    pub(super) part_bytes_min: usize,
    /// How much more a tool counts that answers all words of the intent than one that answers next to none.
    pub(super) coverage_weight: f32,
    /// Hits below this share of the best one are left out.
    pub(super) relative_min: f32,
}

impl Default for Rules {
    fn default() -> Self {
        let rule = |weight, b, words_usual, words_max| FieldRule {
            weight,
            b,
            words_usual,
            words_max,
        };
        Self {
            fields: [
                rule(3.0, 0.3, 3.0, 24),
                rule(0.6, 0.75, 20.0, 128),
                rule(1.0, 0.5, 12.0, 192),
                rule(1.2, 0.5, 4.0, 16),
                rule(0.8, 0.3, 2.0, 8),
                rule(1.0, 0.75, 10.0, 64),
                rule(0.8, 0.75, 20.0, 96),
            ],
            k1: 1.2,
            repeats_max: 3,
            context_weight: 0.25,
            filler_weight: 0.4,
            part_weight: 0.3,
            part_bytes_min: 4,
            coverage_weight: 0.5,
            relative_min: 0.3,
        }
    }
}
