//! Ranking: from a query to sorted hits.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::{Catalog, Posting, Slot};
use super::query::{Cutoff, Query};
use super::rules::{FIELDS, NAME};
use super::text::{self, Stems};

/// The maximum number of words of the intent, and of each earlier message, that are tokenised.
const INTENT_WORDS_MAX: usize = 256;
const RECENT_WORDS_MAX: usize = 48;

/// The maximum number of earlier messages that are used, and of their words that are looked up.
const RECENT_MAX: usize = 3;
const RECENT_TERMS_MAX: usize = 16;

/// The maximum number of words of the intent that are looked up, the rarest first.
const INTENT_TERMS_MAX: usize = 32;

/// If the best hit covers at least this many words of the intent, the others must cover half as many. The best hit is the
/// reference because no tool covers all words of a long message.
const COVERAGE_WORDS_MIN: f32 = 4.0;

/// A search result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The tool's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The score, which is comparable only within one search.
    pub score: f32,
    /// Whether the query contains the tool's name or id.
    pub is_exact: bool,
}

/// A term of the query.
#[derive(Clone, Copy, Debug)]
struct Term {
    term: u32,
    weight: f32,
    /// The index of its word in the intent; `None` for words of earlier messages.
    word: Option<usize>,
}

/// A candidate for a hit. A better candidate compares as greater.
#[derive(Clone, Copy, Debug)]
struct RankedTool<'a> {
    slot: &'a Slot,
    score: f32,
    is_exact: bool,
    is_broken: bool,
    /// The number of words of the intent that it covers.
    covered: f32,
}

impl RankedTool<'_> {
    fn key(&self) -> (bool, bool) {
        (self.is_exact, !self.is_broken)
    }
}

impl Ord for RankedTool<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self
            .key()
            .cmp(&other.key())
            .then_with(|| self.score.total_cmp(&other.score));
        // The names are compared in reverse, because the alphabetically first name ranks higher.
        by_score.then_with(|| (&other.slot.name, &other.slot.id).cmp(&(&self.slot.name, &self.slot.id)))
    }
}

impl PartialOrd for RankedTool<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedTool<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedTool<'_> {}

/// The accumulated score of a tool.
#[derive(Clone, Copy, Debug, Default)]
struct Accumulator {
    score: f32,
    /// The covered words of the intent, one bit each.
    covered: u32,
}

impl Catalog {
    /// Searches the tools whose id `may_use` accepts, best first.
    ///
    /// Tools that the query names come first and are always found. Broken tools come last. Ties are sorted by name.
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        if query.hits_max == 0 || self.is_empty() {
            return Vec::new();
        }
        let (terms, words) = self.terms_of(query);
        let accumulators = self.accumulate(&terms);
        let exact = self.named_in(&query.intent);
        let ranked = self.best(&accumulators, &exact, words, query.hits_max, may_use);
        let floor = best(&ranked, |hit| hit.score) * self.rules.relative_min;
        let covered_max = best(&ranked, |hit| hit.covered);
        let is_weak = |hit: &RankedTool<'_>| {
            hit.score < floor || covered_max >= COVERAGE_WORDS_MIN && hit.covered * 2.0 < covered_max
        };
        ranked
            .into_iter()
            .filter(|hit| query.cutoff == Cutoff::None || hit.is_exact || !is_weak(hit))
            .map(|hit| Hit {
                id: hit.slot.id.to_string(),
                name: hit.slot.name.to_string(),
                score: hit.score,
                is_exact: hit.is_exact,
            })
            .collect()
    }

    /// Selects the terms to look up. Also returns the number of words of the intent among them.
    fn terms_of(&self, query: &Query) -> (Vec<Term>, u32) {
        let mut stems = Stems::default();
        let intent = self.weigh(
            text::tokens(&query.intent, &mut stems, INTENT_WORDS_MAX),
            INTENT_TERMS_MAX,
        );
        let mut terms = Vec::with_capacity(intent.len() * 2);
        for (word, (stem, term, weight)) in intent.iter().enumerate() {
            terms.extend(term.map(|term| Term {
                term,
                weight: *weight,
                word: Some(word),
            }));
            if stem.len() >= self.rules.part_bytes_min {
                terms.extend(self.name_words_around(stem).map(|around| Term {
                    term: around,
                    weight: self.idf(around).min(weight.max(self.idf(around) * 0.5)) * self.rules.part_weight,
                    word: Some(word),
                }));
            }
        }
        let recent = query.recent.iter().rev().take(RECENT_MAX);
        let tokens = recent
            .flat_map(|message| text::tokens(message, &mut stems, RECENT_WORDS_MAX))
            .collect();
        for (_, term, weight) in self.weigh(tokens, RECENT_TERMS_MAX) {
            let new = term.filter(|term| !terms.iter().any(|other| other.term == *term));
            terms.extend(new.map(|term| Term {
                term,
                weight: weight * self.rules.context_weight,
                word: None,
            }));
        }
        (terms, u32::try_from(intent.len()).unwrap_or(u32::MAX))
    }

    /// Looks up words and returns those of the greatest weight.
    fn weigh(&self, tokens: Vec<text::Token>, terms_max: usize) -> Vec<(Arc<str>, Option<u32>, f32)> {
        let mut seen = BTreeMap::new();
        for token in tokens {
            seen.entry(token.stem).or_insert(token.is_filler);
        }
        let mut words: Vec<_> = seen
            .into_iter()
            .map(|(stem, is_filler)| {
                let term = self.find_term(&stem);
                let idf = term.map_or(0.0, |term| self.idf(term));
                (stem, term, if is_filler { idf * self.rules.filler_weight } else { idf })
            })
            .collect();
        words.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        words.truncate(terms_max);
        words
    }

    /// Returns the inverse document frequency of a term. It is not negative, because one is added before the logarithm.
    #[allow(clippy::cast_precision_loss, reason = "a logarithm of counts needs no precision")]
    fn idf(&self, term: u32) -> f32 {
        let (all, with) = (self.len() as f32, self.postings(term).len() as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    /// Accumulates the scores of all terms, by slot.
    fn accumulate(&self, terms: &[Term]) -> Vec<Accumulator> {
        let norms = self.norms();
        let scoring = self.scoring();
        let mut accumulators = vec![Accumulator::default(); scoring.len()];
        for term in terms {
            let bit = term.word.map_or(0, |word| 1_u32 << (word % 32));
            let gain = term.weight * (self.rules.k1 + 1.0);
            for posting in self.postings(term.term) {
                let at = posting.slot as usize;
                let frequency = posting.frequency(&norms, &scoring[at].lengths);
                let accumulator = &mut accumulators[at];
                accumulator.score += gain * frequency / (frequency + self.rules.k1);
                accumulator.covered |= bit;
            }
        }
        accumulators
    }

    /// Precomputes the weight of one occurrence, by field and field length, to avoid divisions in the inner loop.
    fn norms(&self) -> Norms {
        std::array::from_fn(|field| {
            let rule = &self.rules.fields[field];
            let mean = self.mean_length(field);
            #[allow(clippy::cast_precision_loss, reason = "a length is at most 255")]
            std::array::from_fn(|length| rule.weight / (1.0 - rule.b + rule.b * length as f32 / mean))
        })
    }

    /// Selects the best candidates that `may_use` accepts, best first.
    fn best<'a>(
        &'a self,
        accumulators: &[Accumulator],
        exact: &BTreeSet<u32>,
        words: u32,
        hits_max: usize,
        may_use: impl Fn(&str) -> bool,
    ) -> Vec<RankedTool<'a>> {
        let coverage_weight = self.rules.coverage_weight / count(words).max(1.0);
        let mut best: BTreeSet<RankedTool<'a>> = BTreeSet::new();
        let mut worst = None;
        for (at, (accumulator, scoring)) in (0..).zip(accumulators.iter().zip(self.scoring())) {
            let is_exact = !exact.is_empty() && exact.contains(&at);
            if accumulator.covered == 0 && !is_exact {
                continue;
            }
            let covered = count(accumulator.covered.count_ones());
            let score = accumulator.score * scoring.factor() * (1.0 + coverage_weight * covered);
            let is_broken = scoring.is_broken();
            // Rejects most candidates before their names are compared.
            if worst.is_some_and(|worst| (is_exact, !is_broken, score) < worst) {
                continue;
            }
            let Some(slot) = self.slot(at) else { continue };
            let candidate = RankedTool {
                slot,
                score,
                is_exact,
                is_broken,
                covered,
            };
            let is_full = best.len() >= hits_max;
            if is_full && best.first().is_some_and(|worst| candidate <= *worst) || !may_use(&slot.id) {
                continue;
            }
            if is_full {
                best.pop_first();
            }
            best.insert(candidate);
            if best.len() >= hits_max {
                worst = best.first().map(|hit| (hit.is_exact, !hit.is_broken, hit.score));
            }
        }
        best.into_iter().rev().collect()
    }

    /// Finds the tools that a text names: by id, by the complete text, or by a word in the notation of a name.
    fn named_in(&self, intent: &str) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        found.extend(self.with_id(intent.trim()));
        if intent.len() <= NAME_TEXT_BYTES_MAX {
            found.extend(self.named(&text::canonical_name(intent)));
        }
        for word in intent.split_whitespace().take(INTENT_WORDS_MAX) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let canonical = text::canonical_name(word);
            // Only compound words count: a plain word is more likely natural language.
            if canonical.contains('_') {
                found.extend(self.named(&canonical));
                found.extend(self.with_id(word));
            }
        }
        found
    }
}

/// The weight of one occurrence, by field and field length.
type Norms = [[f32; 256]; FIELDS];

impl Posting {
    /// Returns the frequency of the word in the tool, weighted by field and length.
    fn frequency(&self, norms: &Norms, lengths: &[u8; FIELDS]) -> f32 {
        let worth = |field: usize| f32::from(self.counts[field]) * norms[field][usize::from(lengths[field])];
        let name = if self.counts[NAME] > 0 { worth(NAME) } else { 0.0 };
        let others = (0..FIELDS).filter(|field| *field != NAME && self.counts[*field] > 0);
        // Repetitions in other fields never outweigh the name.
        name + others.map(worth).sum::<f32>().min(OUTSIDE_NAME_MAX)
    }
}

/// Returns the maximum of a value over the hits that the query does not name.
fn best(hits: &[RankedTool<'_>], value: impl Fn(&RankedTool<'_>) -> f32) -> f32 {
    hits.iter().filter(|hit| !hit.is_exact).map(value).fold(0.0, f32::max)
}

/// Converts a count of words to a factor.
#[allow(clippy::cast_precision_loss, reason = "at most 32 words")]
fn count(words: u32) -> f32 {
    words as f32
}

/// The greatest weighted frequency of a word outside the name.
const OUTSIDE_NAME_MAX: f32 = 2.0;

/// The longest text that is compared with names, in bytes.
const NAME_TEXT_BYTES_MAX: usize = 128;
