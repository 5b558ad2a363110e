//! Ranking: from the words of a query to sorted hits.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::accumulator::Accumulator;
use super::fuse;
use super::index::{Catalog, Posting, Slot};
use super::query::{Cutoff, Query};
use super::rules::{FIELDS, NAME, Rules};
use super::terms::QueryTerms;
use super::text;
use super::union::CatalogUnion;

/// Maximum number of words of a query that are compared with names.
const NAME_WORDS_MAX: usize = 256;

/// The longest text that is compared with names, in bytes.
const NAME_TEXT_BYTES_MAX: usize = 128;

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
    /// How much of the query the tool covers, from 0 to about 1. It is comparable between searches.
    pub confidence: f32,
    /// Whether the query contains the tool's name or id.
    pub is_exact: bool,
    /// The inner tool that fits the query better: a method of the entity that the tool returns, or an inner tool of a
    /// facade.
    pub leads_to: Option<InnerTool>,
}

/// A tool that can be called only after a call of an entry tool: a method of an entity, or an inner tool of a facade.
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
struct RankedTool<'a> {
    slot: &'a Slot,
    inner: Option<&'a Slot>,
    score: f32,
    confidence: f32,
    is_exact: bool,
    is_broken: bool,
    /// The combined evidence for the tool and the inner tool.
    evidence: Accumulator,
}

impl RankedTool<'_> {
    fn key(&self) -> (bool, bool) {
        (self.is_exact, !self.is_broken)
    }

    fn covered_count(&self) -> f32 {
        count(self.evidence.covered.count_ones())
    }

    fn to_hit(self) -> Hit {
        Hit {
            id: self.slot.id.to_string(),
            name: self.slot.name.to_string(),
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

/// The best tool behind an entry tool.
#[derive(Clone, Copy, Debug)]
struct InnerMatch {
    inner: u32,
    accumulator: Accumulator,
    is_exact: bool,
}

/// The candidates of a search with a limited number of hits.
struct TopCandidates<'a> {
    hits_max: usize,
    hits: BTreeSet<RankedTool<'a>>,
    /// The worst candidate, if the number of hits is reached.
    worst: Option<(bool, bool, f32)>,
}

impl<'a> TopCandidates<'a> {
    /// Returns whether a candidate is certainly worse than all hits. Rejects most candidates before their names are compared.
    fn rejects(&self, is_exact: bool, is_broken: bool, score: f32) -> bool {
        self.worst.is_some_and(|worst| (is_exact, !is_broken, score) < worst)
    }

    fn offer(&mut self, candidate: RankedTool<'a>, may_use: &impl Fn(&str) -> bool) {
        let is_full = self.hits.len() >= self.hits_max;
        let is_worse = || self.hits.first().is_some_and(|worst| candidate <= *worst);
        if is_full && is_worse() || !may_use(&candidate.slot.id) {
            return;
        }
        if is_full {
            self.hits.pop_first();
        }
        self.hits.insert(candidate);
        if self.hits.len() >= self.hits_max {
            let worst = self.hits.first();
            self.worst = worst.map(|hit| (hit.is_exact, !hit.is_broken, hit.score));
        }
    }
}

/// Searches catalogs as one.
pub(super) fn search(catalogs: &CatalogUnion<'_>, query: &Query, may_use: &impl Fn(&str) -> bool) -> Vec<Hit> {
    let terms = QueryTerms::of(query, catalogs);
    let norms = norms(catalogs);
    let mut best = TopCandidates {
        hits_max: query.hits_max,
        hits: BTreeSet::new(),
        worst: None,
    };
    let mut accumulators: Vec<_> = catalogs
        .iter()
        .map(|catalog| catalog.accumulate(&terms, &norms))
        .collect();
    let has_meaning = fuse::fuse(catalogs, query, &mut accumulators);
    for (catalog, accumulators) in catalogs.iter().zip(&accumulators) {
        let exact = catalog.named_in(query);
        catalog.offer(accumulators, &exact, &terms, may_use, &mut best);
    }
    let ranked: Vec<_> = best.hits.into_iter().rev().collect();
    let is_strong = strong_enough(&ranked, query.cutoff, &terms, has_meaning);
    ranked
        .iter()
        .filter(|hit| hit.is_exact || is_strong(hit))
        .map(|hit| hit.to_hit())
        .collect()
}

/// Returns the condition of a cutoff for hits that the query does not name.
fn strong_enough(
    ranked: &[RankedTool<'_>],
    cutoff: Cutoff,
    terms: &QueryTerms,
    has_meaning: bool,
) -> impl Fn(&RankedTool<'_>) -> bool + use<> {
    let rules = Rules::get();
    let unnamed = || ranked.iter().filter(|hit| !hit.is_exact);
    let share = match cutoff {
        Cutoff::None | Cutoff::Relative => rules.relative_min,
        Cutoff::Confident => rules.confident_relative_min,
    };
    let share = if has_meaning {
        share.words_and_meaning
    } else {
        share.words
    };
    let score_min = unnamed().map(|hit| hit.score).fold(0.0, f32::max) * share;
    let covered_max = unnamed().map(RankedTool::covered_count).fold(0.0, f32::max);
    let content = terms.content;
    move |hit| {
        let is_similar = hit.evidence.is_similar();
        let covers_enough = covered_max < COVERAGE_WORDS_MIN || hit.covered_count() * 2.0 >= covered_max;
        let has_content = content == 0 || hit.evidence.covered & content != 0;
        let is_relevant = hit.score >= score_min && (is_similar || covers_enough && has_content);
        let is_confident = content != 0 && hit.confidence >= rules.confidence_min
            || hit.evidence.similarity >= rules.confident_similarity_min;
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

    /// Accumulates the scores of all terms, by slot.
    fn accumulate(&self, terms: &QueryTerms, norms: &Norms) -> Vec<Accumulator> {
        let rules = Rules::get();
        let scoring = self.scoring();
        let mut accumulators = vec![Accumulator::default(); scoring.len()];
        for term in &terms.terms {
            let gain = term.weight * (rules.k1 + 1.0);
            for posting in self.postings(&term.stem) {
                let at = posting.slot as usize;
                let frequency = posting.frequency(norms, &scoring[at].lengths);
                let accumulator = &mut accumulators[at];
                accumulator.word_score += gain * frequency / (frequency + rules.k1);
                accumulator.covered |= term.bit;
            }
        }
        for accumulator in &mut accumulators {
            accumulator.score = accumulator.word_score;
        }
        accumulators
    }

    /// Finds the best usable tool behind each entry tool.
    fn inner_matches(
        &self,
        accumulators: &[Accumulator],
        exact: &BTreeSet<u32>,
        may_use: &impl Fn(&str) -> bool,
    ) -> HashMap<u32, InnerMatch> {
        let mut inner_matches: HashMap<u32, InnerMatch> = HashMap::new();
        for inner in self.inner_slots() {
            let accumulator = accumulators[inner as usize];
            let is_exact = exact.contains(&inner);
            if !accumulator.is_match() && !is_exact {
                continue;
            }
            let Some(slot) = self.slot(inner).filter(|slot| may_use(&slot.id)) else {
                continue;
            };
            let inner_match = InnerMatch {
                inner,
                accumulator,
                is_exact,
            };
            for entry in slot.entry_tools.iter().filter_map(|id| self.with_id(id)) {
                let best = inner_matches.entry(entry).or_insert(inner_match);
                if (is_exact, accumulator.score) > (best.is_exact, best.accumulator.score) {
                    *best = inner_match;
                }
            }
        }
        inner_matches
    }

    /// Offers the tools that cover a word of the intent, have a similar meaning, or are named by the query.
    fn offer<'a>(
        &'a self,
        accumulators: &[Accumulator],
        exact: &BTreeSet<u32>,
        terms: &QueryTerms,
        may_use: &impl Fn(&str) -> bool,
        best: &mut TopCandidates<'a>,
    ) {
        let rules = Rules::get();
        let coverage_weight = rules.coverage_weight / count(terms.words).max(1.0);
        let confidence_max = (terms.information * (rules.k1 + 1.0)).max(f32::MIN_POSITIVE);
        let inner_matches = self.inner_matches(accumulators, exact, may_use);
        for (at, (own, scoring)) in (0..).zip(accumulators.iter().zip(self.scoring())) {
            let inner_match = if inner_matches.is_empty() {
                None
            } else {
                inner_matches.get(&at)
            };
            let is_exact =
                !exact.is_empty() && exact.contains(&at) || inner_match.is_some_and(|inner_match| inner_match.is_exact);
            let inner = inner_match
                .map(|inner_match| inner_match.accumulator)
                .unwrap_or_default();
            let evidence = own.with_inner(&inner);
            if !evidence.is_match() && !is_exact || scoring.is_inner {
                continue;
            }
            let coverage = 1.0 + coverage_weight * count(evidence.covered.count_ones());
            let score = evidence.score * scoring.factor() * coverage;
            let is_broken = scoring.is_broken();
            if best.rejects(is_exact, is_broken, score) {
                continue;
            }
            let Some(slot) = self.slot(at) else { continue };
            let is_better = inner.score * rules.lead_weight > own.score;
            let leading = inner_match.filter(|inner_match| is_better || inner_match.is_exact);
            let candidate = RankedTool {
                slot,
                inner: leading.and_then(|inner_match| self.slot(inner_match.inner)),
                score,
                confidence: evidence.word_score / confidence_max,
                is_exact,
                is_broken,
                evidence,
            };
            best.offer(candidate, may_use);
        }
    }

    /// Finds the tools that a query names: by id, by the complete text, or by a word in the notation of a name.
    fn named_in(&self, query: &Query) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for text in [&query.intent, &query.task] {
            found.extend(self.with_id(text.trim()));
            if text.len() <= NAME_TEXT_BYTES_MAX {
                found.extend(self.named(&text::canonical_name(text)));
            }
            for word in text.split_whitespace().take(NAME_WORDS_MAX) {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
                let canonical = text::canonical_name(word);
                // Only compound words count: a plain word is more likely natural language.
                if canonical.contains('_') {
                    found.extend(self.named(&canonical));
                    found.extend(self.with_id(word));
                }
            }
        }
        found
    }
}

/// The weight of one occurrence, by field and field length.
type Norms = [[f32; 256]; FIELDS];

/// Precomputes the weight of one occurrence, by field and field length, to avoid divisions in the inner loop.
fn norms(catalogs: &CatalogUnion<'_>) -> Norms {
    let rules = catalogs.rules();
    std::array::from_fn(|field| {
        let rule = &rules.fields[field];
        let mean = catalogs.totals().mean_length(field);
        #[allow(clippy::cast_precision_loss, reason = "a length is at most 255")]
        std::array::from_fn(|length| rule.weight / (1.0 - rule.b + rule.b * length as f32 / mean))
    })
}

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

/// Converts a count of words to a factor.
#[allow(clippy::cast_precision_loss, reason = "at most 32 words")]
fn count(words: u32) -> f32 {
    words as f32
}

/// The greatest weighted frequency of a word outside the name.
const OUTSIDE_NAME_MAX: f32 = 2.0;
