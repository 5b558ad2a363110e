//! The inverted index of the tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::document::{Document, IndexedTool, Terms};
use super::embedding::{Embedding, EmbeddingModel, EmbeddingTable};
use super::ranking_parameters::{FIELD_COUNT, NAME_FIELD, RankingParameters};
use super::ranking_signals::{HealthSignal, RankingSignals};
use super::scoring::ScoringData;
use super::text::{self, CachedStemmer};
use super::totals::Totals;

/// A search index of tools. Tools are added and removed per source, usually a component file, without a rebuild of the index.
///
/// Each tool has a slot: its index in the lists of tools. The slot of a removed tool is reused. Each word has an id: its index in
/// the list of postings.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    stemmer: CachedStemmer,
    /// The ids of words, by stem.
    word_ids: HashMap<Box<str>, u32>,
    /// The occurrences of each word, by word id.
    postings: Vec<WordPostings>,
    /// The tools by slot; `None` for a free slot.
    slots: Vec<Option<CatalogTool>>,
    /// The data that scoring reads, by slot, in contiguous memory.
    scoring: Vec<ScoringData>,
    embedding_model: Option<Arc<dyn EmbeddingModel>>,
    /// The embeddings of the tools, by slot.
    embeddings: EmbeddingTable,
    free_slots: Vec<u32>,
    /// The slots of the tools of each source.
    slots_by_source: HashMap<Box<str>, Vec<u32>>,
    slots_by_id: HashMap<Box<str>, u32>,
    /// The slots of the tools, by the canonical form of their name.
    slots_by_name: HashMap<Box<str>, Vec<u32>>,
    /// The ids of the words in names, by stem. Finds words by prefix.
    name_words: BTreeMap<Box<str>, u32>,
    /// The ids of the words in names, by reversed stem. Finds words by suffix.
    name_words_reversed: BTreeMap<Box<str>, u32>,
    /// The slots of the inner tools: those that have entry tools.
    inner_slots: BTreeSet<u32>,
    totals: Totals,
}

/// The occurrences of a word in all tools.
#[derive(Clone, Debug, Default)]
struct WordPostings {
    /// One posting for each tool that has the word, sorted by slot.
    by_slot: Vec<Posting>,
    /// Whether the word is in [`Catalog::name_words`]. The word stays there when its tools are removed.
    is_name_word: bool,
}

/// The occurrences of a word in a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// The number of occurrences in each field.
    pub(super) counts: [u8; FIELD_COUNT],
}

/// A tool in the index.
#[derive(Clone, Debug)]
pub(super) struct CatalogTool {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    /// The ids of its entry tools; empty for a tool that can be called directly.
    pub(super) entry_tools: Box<[Box<str>]>,
    canonical_name: Box<str>,
    /// The ids of its words, each once.
    word_ids: Vec<u32>,
}

impl Catalog {
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model that computes the embeddings of queries, and of tools that are added from now on. The search then also
    /// finds tools by their meaning.
    #[must_use]
    pub fn with_embedding_model(mut self, model: Arc<dyn EmbeddingModel>) -> Self {
        self.embedding_model = Some(model);
        self
    }

    /// Returns the model of [`Catalog::with_embedding_model`], if one was set.
    #[must_use]
    pub fn embedding_model(&self) -> Option<&Arc<dyn EmbeddingModel>> {
        self.embedding_model.as_ref()
    }

    /// Replaces the tools of a source, such as a component file.
    pub fn put(&mut self, source: &str, documents: impl IntoIterator<Item = Document>) {
        let mut indexed = Vec::new();
        for document in documents {
            let terms = Terms::of(&document, &mut self.stemmer);
            let embed = |model| Embedding::of_tool(model, &document.name, &document.description, &document.use_case);
            indexed.push(IndexedTool {
                embedding: self.embedding_model.as_deref().and_then(embed),
                id: document.id,
                name: document.name,
                terms,
                entry_tools: document.entry_tools.into(),
                signals: document.signals,
            });
        }
        self.put_indexed(source, &indexed);
    }

    /// Replaces the tools of a source with tools whose words have been extracted and whose embeddings have been computed.
    pub fn put_indexed<'i>(&mut self, source: &str, tools: impl IntoIterator<Item = &'i IndexedTool>) {
        self.remove(source);
        let slots: Vec<u32> = tools.into_iter().map(|tool| self.insert(tool)).collect();
        if !slots.is_empty() {
            self.slots_by_source.insert(source.into(), slots);
        }
    }

    /// Removes the tools of a source. Returns their number.
    pub fn remove(&mut self, source: &str) -> usize {
        let slots = self.slots_by_source.remove(source).unwrap_or_default();
        for slot in &slots {
            self.remove_slot(*slot);
        }
        slots.len()
    }

    /// Sets the ranking signals of a tool. Returns `false` if the catalog does not have the tool.
    pub fn set_signals(&mut self, id: &str, signals: RankingSignals) -> bool {
        let slot = self.slots_by_id.get(id);
        let scoring = slot.and_then(|slot| self.scoring.get_mut(*slot as usize));
        scoring.map(|scoring| scoring.set_signals(&signals)).is_some()
    }

    /// Sets the health of a tool, also while a search runs. Returns `false` if the catalog does not have the tool.
    pub fn set_health(&self, id: &str, health: HealthSignal) -> bool {
        let slot = self.slots_by_id.get(id);
        let scoring = slot.and_then(|slot| self.scoring.get(*slot as usize));
        scoring.map(|scoring| scoring.set_health(health)).is_some()
    }

    /// Counts a use of a tool, also while a search runs. Returns `false` if the catalog does not have the tool.
    pub fn add_use(&self, id: &str) -> bool {
        let slot = self.slots_by_id.get(id);
        let scoring = slot.and_then(|slot| self.scoring.get(*slot as usize));
        scoring.map(ScoringData::add_use).is_some()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Returns whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a tool and returns its slot.
    fn insert(&mut self, tool: &IndexedTool) -> u32 {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.scoring.push(ScoringData::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let mut occurrences: Vec<(u32, usize)> = Vec::new();
        let mut lengths = [0_u8; FIELD_COUNT];
        for (field, words) in tool.terms.fields() {
            for word in words {
                let word_id = self.word_id(word);
                if field == NAME_FIELD {
                    self.add_name_word(word_id, word);
                }
                occurrences.push((word_id, field));
                lengths[field] = lengths[field].saturating_add(1);
            }
        }
        occurrences.sort_unstable();
        for word_occurrences in occurrences.chunk_by(|a, b| a.0 == b.0) {
            let mut posting = Posting {
                slot,
                counts: [0; FIELD_COUNT],
            };
            for (_, field) in word_occurrences {
                let count = &mut posting.counts[*field];
                *count = count.saturating_add(1).min(RankingParameters::get().repeats_max);
            }
            let postings = &mut self.postings[word_occurrences[0].0 as usize].by_slot;
            let position = match postings.last() {
                Some(last) if last.slot > slot => postings.partition_point(|other| other.slot < slot),
                _ => postings.len(),
            };
            postings.insert(position, posting);
        }
        occurrences.dedup_by_key(|(word_id, _)| *word_id);
        self.totals.add_tool(&lengths);
        let canonical_name: Box<str> = text::canonical_name(&tool.name).into();
        self.slots_by_name.entry(canonical_name.clone()).or_default().push(slot);
        self.slots_by_id.insert(tool.id.as_str().into(), slot);
        let is_inner = !tool.entry_tools.is_empty();
        if is_inner {
            self.inner_slots.insert(slot);
        }
        self.scoring[slot as usize] = ScoringData::new(lengths, is_inner, &tool.signals);
        self.embeddings.set(slot as usize, tool.embedding.as_ref());
        self.slots[slot as usize] = Some(CatalogTool {
            id: tool.id.as_str().into(),
            name: tool.name.as_str().into(),
            entry_tools: tool.entry_tools.iter().map(|id| id.as_str().into()).collect(),
            canonical_name,
            word_ids: occurrences.into_iter().map(|(word_id, _)| word_id).collect(),
        });
        slot
    }

    /// Removes the tool of a slot, which is then free.
    fn remove_slot(&mut self, slot: u32) {
        let Some(tool) = self.slots.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        for word_id in &tool.word_ids {
            let postings = &mut self.postings[*word_id as usize].by_slot;
            if let Ok(position) = postings.binary_search_by_key(&slot, |posting| posting.slot) {
                postings.remove(position);
            }
        }
        let lengths = self.scoring[slot as usize].lengths;
        self.totals.remove_tool(&lengths);
        self.embeddings.set(slot as usize, None);
        self.inner_slots.remove(&slot);
        // Another source may have a tool with the same id.
        if self.slots_by_id.get(&tool.id) == Some(&slot) {
            self.slots_by_id.remove(&tool.id);
        }
        if let Some(slots) = self.slots_by_name.get_mut(&tool.canonical_name) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.slots_by_name.remove(&tool.canonical_name);
            }
        }
        self.free_slots.push(slot);
    }

    /// Returns the id of a stem. A new stem gets the next id.
    fn word_id(&mut self, stem: &str) -> u32 {
        if let Some(word_id) = self.word_ids.get(stem) {
            return *word_id;
        }
        let word_id = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.postings.push(WordPostings::default());
        self.word_ids.insert(stem.into(), word_id);
        word_id
    }

    /// Records that a word occurs in a name.
    fn add_name_word(&mut self, word_id: u32, stem: &str) {
        let postings = &mut self.postings[word_id as usize];
        if !std::mem::replace(&mut postings.is_name_word, true) {
            self.name_words.insert(stem.into(), word_id);
            self.name_words_reversed.insert(reverse(stem), word_id);
        }
    }

    /// Returns the postings of a word: one for each tool that has the word, sorted by slot.
    pub(super) fn postings(&self, stem: &str) -> &[Posting] {
        let word_id = self.word_ids.get(stem);
        let postings = word_id.and_then(|word_id| self.postings.get(*word_id as usize));
        postings.map_or(&[], |postings| postings.by_slot.as_slice())
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(super) fn embeddings(&self) -> &EmbeddingTable {
        &self.embeddings
    }

    /// Returns the slots of the inner tools: those that have entry tools.
    pub(super) fn inner_slots(&self) -> impl Iterator<Item = u32> {
        self.inner_slots.iter().copied()
    }

    /// Returns the tool of a slot, or `None` for a free slot.
    pub(super) fn tool(&self, slot: u32) -> Option<&CatalogTool> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Returns the scoring data, by slot. A free slot has the data of its last tool, but does not occur in postings.
    pub(super) fn scoring(&self) -> &[ScoringData] {
        &self.scoring
    }

    /// Returns the slots of the tools whose name has this canonical form.
    pub(super) fn slots_with_name(&self, canonical_name: &str) -> &[u32] {
        self.slots_by_name.get(canonical_name).map_or(&[], Vec::as_slice)
    }

    /// Returns the slot of the tool with this id, if the catalog has the tool.
    pub(super) fn slot_with_id(&self, id: &str) -> Option<u32> {
        self.slots_by_id.get(id).copied()
    }

    /// Returns the words in names that begin with `prefix` and are longer, sorted.
    pub(super) fn name_words_with_prefix(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.words_with_prefix(prefix.into(), &self.name_words)
    }

    /// Returns the words in names that end with `suffix` and are longer. Each returned word is reversed. The reversed words are
    /// sorted.
    pub(super) fn reversed_name_words_with_suffix(&self, suffix: &str) -> impl Iterator<Item = &str> {
        self.words_with_prefix(reverse(suffix), &self.name_words_reversed)
    }

    /// Returns the words of `words` that begin with `prefix` and are longer. Omits words that no tool has any more.
    fn words_with_prefix<'a>(
        &'a self,
        prefix: Box<str>,
        words: &'a BTreeMap<Box<str>, u32>,
    ) -> impl Iterator<Item = &'a str> {
        let is_used = |word_id: u32| {
            self.postings
                .get(word_id as usize)
                .is_some_and(|postings| !postings.by_slot.is_empty())
        };
        words
            .range::<str, _>((Bound::Excluded(&*prefix), Bound::Unbounded))
            .take_while(move |(word, _)| word.starts_with(&*prefix))
            .filter(move |(_, word_id)| is_used(**word_id))
            .map(|(word, _)| &**word)
    }
}

fn reverse(word: &str) -> Box<str> {
    word.chars().rev().collect::<String>().into()
}
