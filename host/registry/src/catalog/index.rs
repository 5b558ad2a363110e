//! The inverted index, updated per component file.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};

use super::boost::{HealthBoost, RankingSignals};
use super::document::{Document, IndexedTool, Terms};
use super::rules::{FIELDS, NAME, Rules};
use super::text::{self, Stems};

/// A search index of tools. Tools are added and removed per component file, at a cost that depends only on that file.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(super) rules: Rules,
    stems: Stems,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Postings>,
    slots: Vec<Option<Slot>>,
    /// The data of each slot that scoring reads, in contiguous memory.
    scoring: Vec<Scoring>,
    free: Vec<u32>,
    by_source: HashMap<Box<str>, Vec<u32>>,
    by_id: HashMap<Box<str>, u32>,
    /// Slots by the canonical form of the tool's name.
    by_name: HashMap<Box<str>, Vec<u32>>,
    /// The words in names, forwards and reversed, with their terms: finds words by prefix and suffix.
    name_words: BTreeMap<Box<str>, u32>,
    name_words_reversed: BTreeMap<Box<str>, u32>,
    totals: [FieldTotal; FIELDS],
}

/// The tools that contain a word, by slot.
#[derive(Clone, Debug, Default)]
struct Postings {
    tools: Vec<Posting>,
    /// Whether the word ever occurred in a name.
    is_name_word: bool,
}

/// The occurrences of a word in a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// The number of occurrences in each field.
    pub(super) counts: [u8; FIELDS],
}

/// A tool in the index.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    canonical: Box<str>,
    terms: Vec<u32>,
}

/// The data of a tool that scoring reads.
#[derive(Debug, Default)]
pub(super) struct Scoring {
    /// The number of words in each field.
    pub(super) lengths: [u8; FIELDS],
    /// The health, which may change during a search.
    health: AtomicU8,
    /// The product of the other ranking signals.
    lasting_factor: f32,
}

/// The number of words in a field, over all tools that have the field.
#[derive(Clone, Copy, Debug, Default)]
struct FieldTotal {
    words: u64,
    tools: u64,
}

impl Catalog {
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the tools of a file.
    pub fn put(&mut self, source: &str, documents: impl IntoIterator<Item = Document>) {
        let mut indexed = Vec::new();
        for document in documents {
            let terms = Terms::of(&document, &self.rules, &mut self.stems);
            indexed.push(IndexedTool {
                id: document.id,
                name: document.name,
                terms,
                signals: document.signals,
            });
        }
        self.put_indexed(source, &indexed);
    }

    /// Replaces the tools of a file with tools whose words have been extracted.
    pub fn put_indexed<'i>(&mut self, source: &str, tools: impl IntoIterator<Item = &'i IndexedTool>) {
        self.remove(source);
        let slots: Vec<u32> = tools.into_iter().map(|tool| self.insert(tool)).collect();
        if !slots.is_empty() {
            self.by_source.insert(source.into(), slots);
        }
    }

    /// Removes the tools of a file. Returns their number.
    pub fn remove(&mut self, source: &str) -> usize {
        let slots = self.by_source.remove(source).unwrap_or_default();
        for slot in &slots {
            self.remove_slot(*slot);
        }
        slots.len()
    }

    /// Sets the ranking signals of a tool. Returns `false` if there is no such tool.
    pub fn set_signals(&mut self, id: &str, signals: RankingSignals) -> bool {
        let scoring = self.by_id.get(id).and_then(|at| self.scoring.get_mut(*at as usize));
        scoring.map(|scoring| scoring.set_signals(&signals)).is_some()
    }

    /// Sets the health of a tool, also during a search. Returns `false` if there is no such tool.
    pub fn set_health(&self, id: &str, health: HealthBoost) -> bool {
        let scoring = self.by_id.get(id).and_then(|at| self.scoring.get(*at as usize));
        scoring.map(|scoring| scoring.set_health(health)).is_some()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&mut self, tool: &IndexedTool) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.scoring.push(Scoring::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let mut terms: Vec<(u32, usize)> = Vec::new();
        let mut lengths = [0_u8; FIELDS];
        for (field, words) in tool.terms.fields() {
            for word in words {
                let term = self.term(word);
                if field == NAME {
                    self.add_name_word(term, word);
                }
                terms.push((term, field));
                lengths[field] = lengths[field].saturating_add(1);
            }
        }
        terms.sort_unstable();
        for occurrences in terms.chunk_by(|a, b| a.0 == b.0) {
            let mut posting = Posting {
                slot: at,
                counts: [0; FIELDS],
            };
            for (_, field) in occurrences {
                let count = &mut posting.counts[*field];
                *count = count.saturating_add(1).min(self.rules.repeats_max);
            }
            let list = &mut self.postings[occurrences[0].0 as usize].tools;
            let position = match list.last() {
                Some(last) if last.slot > at => list.partition_point(|other| other.slot < at),
                _ => list.len(),
            };
            list.insert(position, posting);
        }
        terms.dedup_by_key(|(term, _)| *term);
        self.count_lengths(&lengths, u64::wrapping_add);
        let canonical: Box<str> = text::canonical_name(&tool.name).into();
        self.by_name.entry(canonical.clone()).or_default().push(at);
        self.by_id.insert(tool.id.as_str().into(), at);
        let mut scoring = Scoring {
            lengths,
            ..Scoring::default()
        };
        scoring.set_signals(&tool.signals);
        self.scoring[at as usize] = scoring;
        self.slots[at as usize] = Some(Slot {
            id: tool.id.as_str().into(),
            name: tool.name.as_str().into(),
            canonical,
            terms: terms.into_iter().map(|(term, _)| term).collect(),
        });
        at
    }

    fn remove_slot(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize).and_then(Option::take) else {
            return;
        };
        for term in &slot.terms {
            let list = &mut self.postings[*term as usize].tools;
            if let Ok(position) = list.binary_search_by_key(&at, |posting| posting.slot) {
                list.remove(position);
            }
        }
        let lengths = self.scoring[at as usize].lengths;
        self.count_lengths(&lengths, u64::wrapping_sub);
        if self.by_id.get(&slot.id) == Some(&at) {
            self.by_id.remove(&slot.id);
        }
        if let Some(named) = self.by_name.get_mut(&slot.canonical) {
            named.retain(|other| *other != at);
            if named.is_empty() {
                self.by_name.remove(&slot.canonical);
            }
        }
        self.free.push(at);
    }

    fn term(&mut self, stem: &str) -> u32 {
        if let Some(term) = self.terms.get(stem) {
            return *term;
        }
        let term = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.postings.push(Postings::default());
        self.terms.insert(stem.into(), term);
        term
    }

    fn add_name_word(&mut self, term: u32, stem: &str) {
        let postings = &mut self.postings[term as usize];
        if !std::mem::replace(&mut postings.is_name_word, true) {
            self.name_words.insert(stem.into(), term);
            self.name_words_reversed.insert(reversed(stem), term);
        }
    }

    fn count_lengths(&mut self, lengths: &[u8; FIELDS], change: fn(u64, u64) -> u64) {
        for (total, length) in self.totals.iter_mut().zip(lengths) {
            if *length > 0 {
                total.words = change(total.words, u64::from(*length));
                total.tools = change(total.tools, 1);
            }
        }
    }

    /// Finds the term of a word that occurs in at least one tool.
    pub(super) fn find_term(&self, stem: &str) -> Option<u32> {
        let term = *self.terms.get(stem)?;
        (!self.postings(term).is_empty()).then_some(term)
    }

    pub(super) fn postings(&self, term: u32) -> &[Posting] {
        self.postings
            .get(term as usize)
            .map_or(&[], |postings| postings.tools.as_slice())
    }

    pub(super) fn slot(&self, at: u32) -> Option<&Slot> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// Returns the scoring data, by slot. Free slots do not occur in postings.
    pub(super) fn scoring(&self) -> &[Scoring] {
        &self.scoring
    }

    /// Finds tools by the canonical form of their name.
    pub(super) fn named(&self, canonical: &str) -> &[u32] {
        self.by_name.get(canonical).map_or(&[], Vec::as_slice)
    }

    /// Finds a tool by its id.
    pub(super) fn with_id(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    /// Finds longer words in names that begin or end with this word.
    pub(super) fn name_words_around(&self, part: &str) -> impl Iterator<Item = u32> {
        let ends: Box<str> = reversed(part);
        let begins: Vec<u32> = longer(&self.name_words, part).collect();
        let ends: Vec<u32> = longer(&self.name_words_reversed, &ends).collect();
        begins
            .into_iter()
            .chain(ends)
            .filter(|term| !self.postings(*term).is_empty())
    }

    /// Returns the mean number of words in a field, over the tools that have it.
    #[allow(clippy::cast_precision_loss, reason = "a mean needs no precision")]
    pub(super) fn mean_length(&self, field: usize) -> f32 {
        let total = self.totals[field];
        let usual = self.rules.fields[field].words_usual;
        (total.words as f32 + usual * TOOLS_USUAL) / (total.tools as f32 + TOOLS_USUAL)
    }
}

impl Scoring {
    fn set_signals(&mut self, signals: &RankingSignals) {
        self.set_health(signals.health);
        self.lasting_factor = signals.lasting_factor();
    }

    fn set_health(&self, health: HealthBoost) {
        let code = match health {
            HealthBoost::Unknown => 0,
            HealthBoost::Healthy => 1,
            HealthBoost::Broken => 2,
        };
        self.health.store(code, Ordering::Relaxed);
    }

    fn health(&self) -> HealthBoost {
        match self.health.load(Ordering::Relaxed) {
            1 => HealthBoost::Healthy,
            2 => HealthBoost::Broken,
            _ => HealthBoost::Unknown,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.health() == HealthBoost::Broken
    }

    /// Returns the product of all ranking signals.
    pub(super) fn factor(&self) -> f32 {
        self.lasting_factor * self.health().factor()
    }
}

impl Clone for Scoring {
    fn clone(&self) -> Self {
        Self {
            lengths: self.lengths,
            health: AtomicU8::new(self.health.load(Ordering::Relaxed)),
            lasting_factor: self.lasting_factor,
        }
    }
}

/// The weight of a field's usual length in its mean length, as a number of tools.
const TOOLS_USUAL: f32 = 8.0;

/// Maximum number of longer words that a word finds. A part of more words is not specific.
const LONGER_MAX: usize = 16;

fn longer<'a>(words: &'a BTreeMap<Box<str>, u32>, part: &'a str) -> impl Iterator<Item = u32> + 'a {
    words
        .range::<str, _>((std::ops::Bound::Excluded(part), std::ops::Bound::Unbounded))
        .take_while(move |(word, _)| word.starts_with(part))
        .take(LONGER_MAX)
        .map(|(_, term)| *term)
}

fn reversed(word: &str) -> Box<str> {
    word.chars().rev().collect::<String>().into()
}
