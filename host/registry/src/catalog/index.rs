//! The inverted index, updated per component file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::boost::{HealthBoost, RankingSignals, use_factor};
use super::document::{Document, IndexedTool, Terms};
use super::embedding::{Embedding, EmbeddingModel, EmbeddingTable};
use super::rules::{FIELDS, NAME, Rules};
use super::text::{self, Stems};
use super::totals::Totals;

/// A search index of tools. Tools are added and removed per component file, at a cost that depends only on that file.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    stems: Stems,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Postings>,
    slots: Vec<Option<Slot>>,
    /// The data of each slot that scoring reads, in contiguous memory.
    scoring: Vec<Scoring>,
    model: Option<Arc<dyn EmbeddingModel>>,
    /// By slot.
    embeddings: EmbeddingTable,
    free: Vec<u32>,
    by_source: HashMap<Box<str>, Vec<u32>>,
    by_id: HashMap<Box<str>, u32>,
    /// Slots by the canonical form of the tool's name.
    by_name: HashMap<Box<str>, Vec<u32>>,
    /// The words in names, forwards and reversed, with their terms. Finds words by prefix and suffix.
    name_words: BTreeMap<Box<str>, u32>,
    name_words_reversed: BTreeMap<Box<str>, u32>,
    /// The tools that have entry tools.
    inner: BTreeSet<u32>,
    totals: Totals,
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
    /// The ids of the tools that lead to it; empty for a tool that can be called directly.
    pub(super) entry_tools: Box<[Box<str>]>,
    canonical: Box<str>,
    terms: Vec<u32>,
}

/// The data of a tool that scoring reads.
#[derive(Debug, Default)]
pub(super) struct Scoring {
    /// The number of words in each field.
    pub(super) lengths: [u8; FIELDS],
    /// Whether it has entry tools, through which it is found.
    pub(super) is_inner: bool,
    /// The health and the number of uses, which may change during a search.
    health: AtomicU8,
    uses: AtomicU64,
    /// The factor for the uses, as bits.
    use_factor: AtomicU32,
    /// The product of the ranking signals that do not change.
    declared_factor: f32,
}

impl Catalog {
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model with which tools that are added from now on, and queries, are embedded: the search then also finds tools by
    /// their meaning.
    #[must_use]
    pub fn with_embedding_model(mut self, model: Arc<dyn EmbeddingModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// Returns the model of [`Catalog::with_embedding_model`].
    #[must_use]
    pub fn embedding_model(&self) -> Option<&Arc<dyn EmbeddingModel>> {
        self.model.as_ref()
    }

    /// Replaces the tools of a file.
    pub fn put(&mut self, source: &str, documents: impl IntoIterator<Item = Document>) {
        let mut indexed = Vec::new();
        for document in documents {
            let terms = Terms::of(&document, &mut self.stems);
            let embed = |model| Embedding::of_tool(model, &document.name, &document.description, &document.use_case);
            indexed.push(IndexedTool {
                embedding: self.model.as_deref().and_then(embed),
                id: document.id,
                name: document.name,
                terms,
                entry_tools: document.entry_tools.into(),
                signals: document.signals,
            });
        }
        self.put_indexed(source, &indexed);
    }

    /// Replaces the tools of a file with tools whose words and embeddings have been computed.
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

    /// Counts a use of a tool, also during a search. Returns `false` if there is no such tool.
    pub fn add_use(&self, id: &str) -> bool {
        let scoring = self.by_id.get(id).and_then(|at| self.scoring.get(*at as usize));
        scoring.map(Scoring::add_use).is_some()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are no tools.
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
                *count = count.saturating_add(1).min(Rules::get().repeats_max);
            }
            let list = &mut self.postings[occurrences[0].0 as usize].tools;
            let position = match list.last() {
                Some(last) if last.slot > at => list.partition_point(|other| other.slot < at),
                _ => list.len(),
            };
            list.insert(position, posting);
        }
        terms.dedup_by_key(|(term, _)| *term);
        self.totals.count(&lengths, u64::wrapping_add);
        let canonical: Box<str> = text::canonical_name(&tool.name).into();
        self.by_name.entry(canonical.clone()).or_default().push(at);
        self.by_id.insert(tool.id.as_str().into(), at);
        let is_inner = !tool.entry_tools.is_empty();
        if is_inner {
            self.inner.insert(at);
        }
        let mut scoring = Scoring {
            lengths,
            is_inner,
            ..Scoring::default()
        };
        scoring.set_signals(&tool.signals);
        self.scoring[at as usize] = scoring;
        self.embeddings.set(at as usize, tool.embedding.as_ref());
        self.slots[at as usize] = Some(Slot {
            id: tool.id.as_str().into(),
            name: tool.name.as_str().into(),
            entry_tools: tool.entry_tools.iter().map(|id| id.as_str().into()).collect(),
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
        self.totals.count(&lengths, u64::wrapping_sub);
        self.embeddings.set(at as usize, None);
        self.inner.remove(&at);
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

    /// Returns the tools that have a word, by slot.
    pub(super) fn postings(&self, stem: &str) -> &[Posting] {
        let postings = self.terms.get(stem).and_then(|term| self.postings.get(*term as usize));
        postings.map_or(&[], |postings| postings.tools.as_slice())
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(super) fn embeddings(&self) -> &EmbeddingTable {
        &self.embeddings
    }

    /// Returns the slots of the tools that have entry tools.
    pub(super) fn inner_slots(&self) -> impl Iterator<Item = u32> {
        self.inner.iter().copied()
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

    /// Returns the longer words in names that begin with a word, sorted.
    pub(super) fn name_words_beginning_with(&self, part: &str) -> impl Iterator<Item = &str> {
        self.longer(&self.name_words, part.into())
    }

    /// Returns the longer words in names that end with a word: reversed, and sorted in this form.
    pub(super) fn name_words_ending_with(&self, part: &str) -> impl Iterator<Item = &str> {
        self.longer(&self.name_words_reversed, reversed(part))
    }

    fn longer<'a>(&'a self, words: &'a BTreeMap<Box<str>, u32>, part: Box<str>) -> impl Iterator<Item = &'a str> {
        let is_used = |term: u32| {
            self.postings
                .get(term as usize)
                .is_some_and(|postings| !postings.tools.is_empty())
        };
        words
            .range::<str, _>((Bound::Excluded(&*part), Bound::Unbounded))
            .take_while(move |(word, _)| word.starts_with(&*part))
            .filter(move |(_, term)| is_used(**term))
            .map(|(word, _)| &**word)
    }
}

impl Scoring {
    fn set_signals(&mut self, signals: &RankingSignals) {
        self.set_health(signals.health);
        self.uses = AtomicU64::new(signals.uses);
        self.use_factor = AtomicU32::new(use_factor(signals.uses).to_bits());
        self.declared_factor = signals.declared_factor();
    }

    fn add_use(&self) {
        let uses = self.uses.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.use_factor.store(use_factor(uses).to_bits(), Ordering::Relaxed);
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
        self.declared_factor * f32::from_bits(self.use_factor.load(Ordering::Relaxed)) * self.health().factor()
    }
}

impl Clone for Scoring {
    fn clone(&self) -> Self {
        Self {
            lengths: self.lengths,
            is_inner: self.is_inner,
            health: AtomicU8::new(self.health.load(Ordering::Relaxed)),
            uses: AtomicU64::new(self.uses.load(Ordering::Relaxed)),
            use_factor: AtomicU32::new(self.use_factor.load(Ordering::Relaxed)),
            declared_factor: self.declared_factor,
        }
    }
}

fn reversed(word: &str) -> Box<str> {
    word.chars().rev().collect::<String>().into()
}
