//! The inverted index: which words stand in which tools, by the file that the tools come from.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};

use super::boost::{HealthBoost, RankingSignals};
use super::document::{Document, IndexedTool, Terms};
use super::rules::{FIELDS, NAME, Rules};
use super::text::{self, Stems};

/// The tools that can be found. Adding and removing go file by file and cost what the file holds.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(super) rules: Rules,
    stems: Stems,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Postings>,
    slots: Vec<Option<Slot>>,
    /// What scoring reads of each slot, close together.
    scoring: Vec<Scoring>,
    free: Vec<u32>,
    by_source: HashMap<Box<str>, Vec<u32>>,
    by_id: HashMap<Box<str>, u32>,
    /// Tools by the canonical form of their names.
    by_name: HashMap<Box<str>, Vec<u32>>,
    /// The words of names, read from their beginning and from their end, with their terms.
    name_words: BTreeMap<Box<str>, u32>,
    name_words_reversed: BTreeMap<Box<str>, u32>,
    totals: [FieldTotal; FIELDS],
}

/// A word, and the tools that it stands in, by slot.
#[derive(Clone, Debug, Default)]
struct Postings {
    tools: Vec<Posting>,
    /// Whether it ever stood in a name.
    is_name_word: bool,
}

/// One word in one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// How often it stands in each field.
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

/// What scoring reads of a tool.
#[derive(Debug, Default)]
pub(super) struct Scoring {
    /// Words in each field.
    pub(super) lengths: [u8; FIELDS],
    /// Whether it works; the end of a call may change it while others search.
    health: AtomicU8,
    /// What else multiplies its score.
    lasting_factor: f32,
}

/// The words of a field over all tools that have it.
#[derive(Clone, Copy, Debug, Default)]
struct FieldTotal {
    words: u64,
    tools: u64,
}

impl Catalog {
    /// Makes a catalogue without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the tools of a file in place of those that it had.
    pub fn put(&mut self, source: &str, documents: impl IntoIterator<Item = Document>) {
        let mut indexed = Vec::new();
        for document in documents {
            let terms = Terms::of(&document, &self.rules, &mut self.stems);
            indexed.push(IndexedTool {
                id: document.id,
                name: document.name,
                terms,
                standing: document.standing,
            });
        }
        self.put_indexed(source, &indexed);
    }

    /// Takes the tools of a file, whose words were read before, in place of those that it had.
    pub fn put_indexed<'i>(&mut self, source: &str, tools: impl IntoIterator<Item = &'i IndexedTool>) {
        self.remove(source);
        let slots: Vec<u32> = tools.into_iter().map(|tool| self.insert(tool)).collect();
        if !slots.is_empty() {
            self.by_source.insert(source.into(), slots);
        }
    }

    /// Forgets the tools of a file. Returns how many there were.
    pub fn remove(&mut self, source: &str) -> usize {
        let slots = self.by_source.remove(source).unwrap_or_default();
        for slot in &slots {
            self.take_out(*slot);
        }
        slots.len()
    }

    /// Changes what speaks for a tool. `false` when there is no such tool.
    pub fn set_standing(&mut self, id: &str, standing: RankingSignals) -> bool {
        let scoring = self.by_id.get(id).and_then(|at| self.scoring.get_mut(*at as usize));
        scoring.map(|scoring| scoring.stand(&standing)).is_some()
    }

    /// Notes whether a tool works, also while others search. `false` when there is no such tool.
    pub fn set_health(&self, id: &str, health: HealthBoost) -> bool {
        let scoring = self.by_id.get(id).and_then(|at| self.scoring.get(*at as usize));
        scoring.map(|scoring| scoring.set_health(health)).is_some()
    }

    /// Returns how many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Tells whether there is no tool.
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
                    self.know_name_word(term, word);
                }
                terms.push((term, field));
                lengths[field] = lengths[field].saturating_add(1);
            }
        }
        terms.sort_unstable();
        for of_term in terms.chunk_by(|a, b| a.0 == b.0) {
            let mut posting = Posting {
                slot: at,
                counts: [0; FIELDS],
            };
            for (_, field) in of_term {
                let count = &mut posting.counts[*field];
                *count = count.saturating_add(1).min(self.rules.repeats_max);
            }
            let list = &mut self.postings[of_term[0].0 as usize].tools;
            let place = match list.last() {
                Some(last) if last.slot > at => list.partition_point(|other| other.slot < at),
                _ => list.len(),
            };
            list.insert(place, posting);
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
        scoring.stand(&tool.standing);
        self.scoring[at as usize] = scoring;
        self.slots[at as usize] = Some(Slot {
            id: tool.id.as_str().into(),
            name: tool.name.as_str().into(),
            canonical,
            terms: terms.into_iter().map(|(term, _)| term).collect(),
        });
        at
    }

    fn take_out(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize).and_then(Option::take) else {
            return;
        };
        for term in &slot.terms {
            let list = &mut self.postings[*term as usize].tools;
            if let Ok(place) = list.binary_search_by_key(&at, |posting| posting.slot) {
                list.remove(place);
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

    fn know_name_word(&mut self, term: u32, stem: &str) {
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

    /// Looks a word up. A word that no tool has any more is as unknown as one that none ever had.
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

    /// Returns what scoring reads, by slot; free slots are in no posting.
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

    /// Finds the words of names that begin or end with this one and are longer.
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
    fn stand(&mut self, standing: &RankingSignals) {
        self.set_health(standing.health);
        self.lasting_factor = standing.lasting_factor();
    }

    fn set_health(&self, health: HealthBoost) {
        let word = match health {
            HealthBoost::Unknown => 0,
            HealthBoost::Healthy => 1,
            HealthBoost::Broken => 2,
        };
        self.health.store(word, Ordering::Relaxed);
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

    /// What its standing multiplies its score by.
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

/// How many tools the usual length of a field counts for beside those that are there.
const TOOLS_USUAL: f32 = 8.0;

/// How many longer words are looked at; a part that is in more says nothing.
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
