//! Ranking: computes sorted hits from the words of a query.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::accumulator::Accumulator;
use super::index::{Catalog, CatalogTool, Posting};
use super::query::{Cutoff, Query};
use super::ranking_parameters::{FIELD_COUNT, NAME_FIELD, RankingParameters};
use super::similarity::add_similarities;
use super::terms::QueryTerms;
use super::text;
use super::union::CatalogUnion;

/// Maximum number of words of the intent, and of the task, that are compared with names.
const NAME_WORDS_MAX: usize = 256;

/// The longest intent or task that is compared with names as one name, in bytes.
const NAME_TEXT_BYTES_MAX: usize = 128;

/// A cutoff checks coverage only if some hit covers at least this many words of the intent and the task. A hit without a similar
/// meaning must then cover at least half as many words as the hit that covers the most. The reference is not the number of words
/// in the query, because no tool covers all words of a long message.
const COVERAGE_WORDS_MIN: f32 = 4.0;

/// The greatest weighted frequency of a word outside the name. It is less than that of a word in a short name, so that
/// repetitions in other fields do not outweigh the name.
const OUTSIDE_NAME_FREQUENCY_MAX: f32 = 2.0;

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
    /// How much of the query the tool covers by its words, from 0 to about 1. It is comparable between searches.
    pub confidence: f32,
    /// Whether the query contains the name or the id of the tool, or of the inner tool to which it leads.
    pub is_exact: bool,
    /// A tool that can be called only after this one and that the query names or fits better: a method of the entity that this
    /// tool returns, or a tool behind this facade.
    pub leads_to: Option<InnerTool>,
}

/// A tool that can be called only after a call of an entry tool: a method of an entity, or a tool behind a facade.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InnerTool {
    /// The tool's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
}

/// A candidate for a hit. A better candidate compares as greater.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    tool: &'a CatalogTool,
    /// The tool behind `tool`, for [`Hit::leads_to`].
    inner: Option<&'a CatalogTool>,
    score: f32,
    confidence: f32,
    is_exact: bool,
    is_broken: bool,
    /// The combined scores of the tool and the best tool behind it.
    accumulator: Accumulator,
}

impl Candidate<'_> {
    /// Returns the properties that are compared before the scores.
    fn rank_class(&self) -> (bool, bool) {
        (self.is_exact, !self.is_broken)
    }

    fn covered_count(&self) -> f32 {
        to_f32(self.accumulator.covered_words.count_ones())
    }

    fn to_hit(self) -> Hit {
        Hit {
            id: self.tool.id.to_string(),
            name: self.tool.name.to_string(),
            score: self.score,
            confidence: self.confidence,
            is_exact: self.is_exact,
            leads_to: self.inner.map(|inner| InnerTool {
                id: inner.id.to_string(),
                name: inner.name.to_string(),
            }),
        }
    }
}

impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self
            .rank_class()
            .cmp(&other.rank_class())
            .then_with(|| self.score.total_cmp(&other.score));
        // The names are compared in reverse, because the alphabetically first name ranks higher.
        by_score.then_with(|| (&other.tool.name, &other.tool.id).cmp(&(&self.tool.name, &self.tool.id)))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate<'_> {}

/// The tool that matches the query best, among the tools behind an entry tool.
#[derive(Clone, Copy, Debug)]
struct InnerMatch {
    slot: u32,
    accumulator: Accumulator,
    is_exact: bool,
}

/// The best candidates of a search, as many as the search may have hits.
struct TopCandidates<'a> {
    hits_max: usize,
    candidates: BTreeSet<Candidate<'a>>,
    /// The worst candidate, if there are `hits_max` of them: whether it is exact, whether it is not broken, and its score.
    worst: Option<(bool, bool, f32)>,
}

impl<'a> TopCandidates<'a> {
    /// Returns whether a candidate with these properties is worse than all best candidates, whichever name it has. Most
    /// candidates are rejected here, without a comparison of names.
    fn rejects(&self, is_exact: bool, is_broken: bool, score: f32) -> bool {
        self.worst.is_some_and(|worst| (is_exact, !is_broken, score) < worst)
    }

    /// Adds a candidate if it is one of the best ones and `may_use` accepts its id.
    fn offer(&mut self, candidate: Candidate<'a>, may_use: &impl Fn(&str) -> bool) {
        let is_full = self.candidates.len() >= self.hits_max;
        let is_worse = || self.candidates.first().is_some_and(|worst| candidate <= *worst);
        if is_full && is_worse() || !may_use(&candidate.tool.id) {
            return;
        }
        if is_full {
            self.candidates.pop_first();
        }
        self.candidates.insert(candidate);
        if self.candidates.len() >= self.hits_max {
            let worst = self.candidates.first();
            self.worst = worst.map(|worst| (worst.is_exact, !worst.is_broken, worst.score));
        }
    }
}

/// Searches several catalogs as one.
pub(super) fn search(catalogs: &CatalogUnion<'_>, query: &Query, may_use: &impl Fn(&str) -> bool) -> Vec<Hit> {
    let terms = QueryTerms::of(query, catalogs);
    let occurrence_weights = occurrence_weights(catalogs);
    let mut best = TopCandidates {
        hits_max: query.hits_max,
        candidates: BTreeSet::new(),
        worst: None,
    };
    let mut accumulators: Vec<_> = catalogs
        .iter()
        .map(|catalog| catalog.accumulate(&terms, &occurrence_weights))
        .collect();
    let has_similarities = add_similarities(catalogs, query, terms.confident_score(), &mut accumulators);
    for (catalog, accumulators) in catalogs.iter().zip(&accumulators) {
        let named_slots = catalog.slots_named_in(query);
        catalog.offer_candidates(accumulators, &named_slots, &terms, may_use, &mut best);
    }
    let candidates: Vec<_> = best.candidates.into_iter().rev().collect();
    let passes_cutoff = cutoff_condition(&candidates, query.cutoff, &terms, has_similarities);
    candidates
        .iter()
        .filter(|candidate| candidate.is_exact || passes_cutoff(candidate))
        .map(|candidate| candidate.to_hit())
        .collect()
}

/// Returns the condition that a candidate must satisfy to pass a cutoff. Candidates that the query names do not need to pass.
fn cutoff_condition(
    candidates: &[Candidate<'_>],
    cutoff: Cutoff,
    terms: &QueryTerms,
    has_similarities: bool,
) -> impl Fn(&Candidate<'_>) -> bool + use<> {
    let parameters = RankingParameters::get();
    let unnamed_candidates = || candidates.iter().filter(|candidate| !candidate.is_exact);
    let score_share_min = match cutoff {
        Cutoff::None | Cutoff::Relative => parameters.score_share_min,
        Cutoff::Confident => parameters.confident_score_share_min,
    };
    let share = if has_similarities {
        score_share_min.words_and_meaning
    } else {
        score_share_min.words
    };
    let scores = unnamed_candidates().map(|candidate| candidate.score);
    let score_min = scores.fold(0.0, f32::max) * share;
    let covered_max = unnamed_candidates().map(Candidate::covered_count).fold(0.0, f32::max);
    let content_bits = terms.content_bits;
    move |candidate| {
        let is_similar = candidate.accumulator.is_similar();
        let covers_enough = covered_max < COVERAGE_WORDS_MIN || candidate.covered_count() * 2.0 >= covered_max;
        let covers_content = content_bits == 0 || candidate.accumulator.covered_words & content_bits != 0;
        let is_relevant = candidate.score >= score_min && (is_similar || covers_enough && covers_content);
        let is_confident = content_bits != 0 && candidate.confidence >= parameters.confidence_min
            || candidate.accumulator.similarity >= parameters.confident_similarity_min;
        match cutoff {
            Cutoff::None => true,
            Cutoff::Relative => is_relevant,
            Cutoff::Confident => is_relevant && is_confident,
        }
    }
}

impl Catalog {
    /// Searches this catalog only; see [`CatalogUnion::search`].
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        CatalogUnion::new([self]).search(query, may_use)
    }

    /// Adds up the scores of all words of a query, by slot.
    fn accumulate(&self, terms: &QueryTerms, occurrence_weights: &OccurrenceWeights) -> Vec<Accumulator> {
        let parameters = RankingParameters::get();
        let scoring = self.scoring();
        let mut accumulators = vec![Accumulator::default(); scoring.len()];
        for term in &terms.terms {
            let term_score_max = term.weight * (parameters.k1 + 1.0);
            for posting in self.postings(&term.stem) {
                let slot = posting.slot as usize;
                let frequency = posting.frequency(occurrence_weights, &scoring[slot].lengths);
                let accumulator = &mut accumulators[slot];
                accumulator.word_score += term_score_max * frequency / (frequency + parameters.k1);
                accumulator.covered_words |= term.bit;
            }
        }
        for accumulator in &mut accumulators {
            accumulator.score = accumulator.word_score;
        }
        accumulators
    }

    /// For each entry tool, finds the tool behind it that matches the query best, among the tools that `may_use` accepts. The
    /// keys are the slots of the entry tools.
    fn inner_matches(
        &self,
        accumulators: &[Accumulator],
        named_slots: &BTreeSet<u32>,
        may_use: &impl Fn(&str) -> bool,
    ) -> HashMap<u32, InnerMatch> {
        let mut inner_matches: HashMap<u32, InnerMatch> = HashMap::new();
        for slot in self.inner_slots() {
            let accumulator = accumulators[slot as usize];
            let is_exact = named_slots.contains(&slot);
            if !accumulator.is_match() && !is_exact {
                continue;
            }
            let Some(tool) = self.tool(slot).filter(|tool| may_use(&tool.id)) else {
                continue;
            };
            let inner_match = InnerMatch {
                slot,
                accumulator,
                is_exact,
            };
            for entry_slot in tool.entry_tools.iter().filter_map(|id| self.slot_with_id(id)) {
                let best_match = inner_matches.entry(entry_slot).or_insert(inner_match);
                if (is_exact, accumulator.score) > (best_match.is_exact, best_match.accumulator.score) {
                    *best_match = inner_match;
                }
            }
        }
        inner_matches
    }

    /// Offers candidates to `best`: the tools that have a word of the intent or the task or a similar meaning, or that the
    /// query names. An inner tool is not offered itself, but with its entry tools.
    fn offer_candidates<'a>(
        &'a self,
        accumulators: &[Accumulator],
        named_slots: &BTreeSet<u32>,
        terms: &QueryTerms,
        may_use: &impl Fn(&str) -> bool,
        best: &mut TopCandidates<'a>,
    ) {
        let parameters = RankingParameters::get();
        let bonus_per_word = parameters.coverage_bonus / to_f32(terms.word_count).max(1.0);
        let confident_score = terms.confident_score();
        let inner_matches = self.inner_matches(accumulators, named_slots, may_use);
        for (slot, (tool_accumulator, scoring)) in (0..).zip(accumulators.iter().zip(self.scoring())) {
            // Most searches have no inner matches and no named slots. Both checks for emptiness avoid a lookup per tool.
            let inner_match = if inner_matches.is_empty() {
                None
            } else {
                inner_matches.get(&slot)
            };
            let is_exact = !named_slots.is_empty() && named_slots.contains(&slot)
                || inner_match.is_some_and(|inner_match| inner_match.is_exact);
            let inner_accumulator = inner_match
                .map(|inner_match| inner_match.accumulator)
                .unwrap_or_default();
            let accumulator = tool_accumulator.with_inner(&inner_accumulator);
            if !accumulator.is_match() && !is_exact || scoring.is_inner {
                continue;
            }
            let coverage_factor = 1.0 + bonus_per_word * to_f32(accumulator.covered_words.count_ones());
            let score = accumulator.score * scoring.factor() * coverage_factor;
            let is_broken = scoring.is_broken();
            if best.rejects(is_exact, is_broken, score) {
                continue;
            }
            let Some(tool) = self.tool(slot) else { continue };
            let is_inner_better = inner_accumulator.score * parameters.inner_weight > tool_accumulator.score;
            let shown_inner = inner_match.filter(|inner_match| is_inner_better || inner_match.is_exact);
            let candidate = Candidate {
                tool,
                inner: shown_inner.and_then(|inner_match| self.tool(inner_match.slot)),
                score,
                confidence: accumulator.word_score / confident_score,
                is_exact,
                is_broken,
                accumulator,
            };
            best.offer(candidate, may_use);
        }
    }

    /// Returns the slots of the tools that a query names. A query names a tool if its intent or task, or a compound word in them,
    /// is the id or the name of the tool.
    fn slots_named_in(&self, query: &Query) -> BTreeSet<u32> {
        let mut slots = BTreeSet::new();
        for text in [&query.intent, &query.task] {
            slots.extend(self.slot_with_id(text.trim()));
            if text.len() <= NAME_TEXT_BYTES_MAX {
                slots.extend(self.slots_with_name(&text::canonical_name(text)));
            }
            for word in text.split_whitespace().take(NAME_WORDS_MAX) {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
                let canonical_name = text::canonical_name(word);
                // Only compound words count: a plain word is more likely natural language.
                if canonical_name.contains('_') {
                    slots.extend(self.slots_with_name(&canonical_name));
                    slots.extend(self.slot_with_id(word));
                }
            }
        }
        slots
    }
}

/// The weight of one occurrence of a word, by field and by the number of words in the field.
type OccurrenceWeights = [[f32; 256]; FIELD_COUNT];

/// Precomputes the weights of occurrences, to avoid divisions in the loop over all postings.
fn occurrence_weights(catalogs: &CatalogUnion<'_>) -> OccurrenceWeights {
    let parameters = catalogs.parameters();
    std::array::from_fn(|field| {
        let field_parameters = &parameters.fields[field];
        let mean_length = catalogs.totals().mean_length(field);
        #[allow(clippy::cast_precision_loss, reason = "a length is at most 255")]
        std::array::from_fn(|length| {
            field_parameters.weight / (1.0 - field_parameters.b + field_parameters.b * length as f32 / mean_length)
        })
    })
}

impl Posting {
    /// Returns the frequency of the word in the tool, weighted by field and length.
    fn frequency(&self, occurrence_weights: &OccurrenceWeights, lengths: &[u8; FIELD_COUNT]) -> f32 {
        let in_field =
            |field: usize| f32::from(self.counts[field]) * occurrence_weights[field][usize::from(lengths[field])];
        let in_name = if self.counts[NAME_FIELD] > 0 {
            in_field(NAME_FIELD)
        } else {
            0.0
        };
        let other_fields = (0..FIELD_COUNT).filter(|field| *field != NAME_FIELD && self.counts[*field] > 0);
        in_name + other_fields.map(in_field).sum::<f32>().min(OUTSIDE_NAME_FREQUENCY_MAX)
    }
}

#[allow(clippy::cast_precision_loss, reason = "at most 32 words")]
fn to_f32(word_count: u32) -> f32 {
    word_count as f32
}
