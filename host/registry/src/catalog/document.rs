//! The searchable text of a tool, and the words that a catalog extracts from it.

use std::sync::Arc;

use serde_json::Value;
use toolwit_core::ToolDefinition;

use super::embedding::Embedding;
use super::ranking_parameters::{FIELD_COUNT, RankingParameters};
use super::ranking_signals::RankingSignals;
use super::text::{self, CachedStemmer};

/// The searchable text of a tool, its entry tools and its ranking signals.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The tool's id, which a hit contains.
    pub id: String,
    /// The tool's name, in any notation: `get_weather`, `getWeather`, `weather.get`.
    pub name: String,
    /// Names and descriptions of its parameters.
    pub parameters: String,
    /// Its description.
    pub description: String,
    /// Its tags.
    pub tags: String,
    /// Its category.
    pub category: String,
    /// The situation in which to use the tool.
    pub use_case: String,
    /// Example requests.
    pub examples: String,
    /// The ids of the entry tools: this tool can be called only after one of them. The entry tools of a method are the tools
    /// that return its entity; the entry tool of a tool behind a facade is the facade. A search returns an entry tool instead
    /// of this tool. The list is empty for a tool that can be called directly.
    pub entry_tools: Vec<String>,
    /// The ranking signals of the tool.
    pub signals: RankingSignals,
}

impl Document {
    /// Creates a document with an id, a name and a description.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            ..Self::default()
        }
    }

    /// Creates a document from the id, name, description, category and parameters of a tool's definition.
    #[must_use]
    pub fn of_definition(tool: &ToolDefinition) -> Self {
        let document = Self::new(tool.id.as_str(), tool.name(), tool.description.as_str());
        let category = tool.category.clone().unwrap_or_default();
        Self {
            category,
            ..document.with_parameters(parameter_text(&tool.input_schema))
        }
    }

    /// Sets the names and descriptions of the parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl Into<String>) -> Self {
        self.parameters = parameters.into();
        self
    }

    /// Sets the ids of the entry tools of this tool; see [`Document::entry_tools`].
    #[must_use]
    pub fn with_entry_tools<T: Into<String>>(mut self, entry_tools: impl IntoIterator<Item = T>) -> Self {
        self.entry_tools = entry_tools.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the texts of the fields, in the order of [`RankingParameters::fields`].
    fn field_texts(&self) -> [&str; FIELD_COUNT] {
        [
            &self.name,
            &self.parameters,
            &self.description,
            &self.tags,
            &self.category,
            &self.use_case,
            &self.examples,
        ]
    }
}

/// The stemmed words of a tool, by field, in a format that can be stored.
///
/// Each field is a line of words that are separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms(String);

impl Terms {
    /// Restores terms from their text.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// Returns the terms as text, for [`Terms::from_text`].
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Extracts the words of each field, up to the field's maximum number of words.
    pub(super) fn of(document: &Document, stemmer: &mut CachedStemmer) -> Self {
        let parameters = RankingParameters::get();
        let mut text = String::new();
        for (field, field_text) in document.field_texts().into_iter().enumerate() {
            if field > 0 {
                text.push('\n');
            }
            for (index, token) in text::tokens(field_text, stemmer, parameters.fields[field].words_max)
                .iter()
                .enumerate()
            {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(&token.stem);
            }
        }
        Self(text)
    }

    /// Returns the index and the words of each field.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, impl Iterator<Item = &str>)> {
        let lines = self.0.split('\n').take(FIELD_COUNT).enumerate();
        lines.map(|(field, words)| (field, words.split(' ').filter(|word| !word.is_empty())))
    }
}

/// A tool that is ready to be put into a catalog: its words have been extracted and, if there is an embedding model, its
/// embedding has been computed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexedTool {
    /// The tool's id, which a hit contains.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its stemmed words.
    pub terms: Terms,
    /// Its embedding, for a search by meaning.
    pub embedding: Option<Embedding>,
    /// The ids of its entry tools; see [`Document::entry_tools`].
    pub entry_tools: Arc<[String]>,
    /// The ranking signals of the tool.
    pub signals: RankingSignals,
}

impl IndexedTool {
    /// Creates a tool without an embedding or entry tools, and with the default ranking signals.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, terms: Terms) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            terms,
            ..Self::default()
        }
    }
}

/// Extracts the stemmed words of many tools, with a shared cache of stems.
#[derive(Clone, Debug, Default)]
pub struct TermExtractor {
    stemmer: CachedStemmer,
}

impl TermExtractor {
    /// Creates an extractor.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Extracts the stemmed words of a tool.
    pub fn extract(&mut self, document: &Document) -> Terms {
        Terms::of(document, &mut self.stemmer)
    }
}

/// Collects the names and descriptions of the parameters, and of the properties of nested objects up to a depth of
/// `DEPTH_MAX`.
fn parameter_text(schema: &Value) -> String {
    const DEPTH_MAX: usize = 3;
    fn collect(schema: &Value, depth: usize, text: &mut String) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            text.push_str(name);
            text.push(' ');
            text.push_str(property["description"].as_str().unwrap_or_default());
            text.push('\n');
            if depth < DEPTH_MAX {
                collect(property, depth + 1, text);
            }
        }
    }
    let mut text = String::new();
    collect(schema, 0, &mut text);
    text
}
