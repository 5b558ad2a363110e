//! The searchable text of a tool.

use std::sync::Arc;

use serde_json::Value;
use toolwit_core::ToolDefinition;

use super::boost::RankingSignals;
use super::embedding::Embedding;
use super::rules::{FIELDS, Rules};
use super::text::{self, Stems};

/// The searchable text of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The tool's id, which a hit carries.
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
    /// The ids of the entry tools, one of which must be called before this tool: the tools that return the entity of a
    /// method, or the facade of an inner tool. A search returns the entry tools instead of this tool.
    pub entry_tools: Vec<String>,
    /// Health, quality and use.
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

    /// Creates the document of a tool from its definition.
    #[must_use]
    pub fn of_definition(tool: &ToolDefinition) -> Self {
        let document = Self::new(tool.id.as_str(), tool.name(), tool.description.as_str());
        let category = tool.category.clone().unwrap_or_default();
        Self {
            category,
            ..document.with_parameters(parameters(&tool.input_schema))
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
    pub fn behind<T: Into<String>>(mut self, entry_tools: impl IntoIterator<Item = T>) -> Self {
        self.entry_tools = entry_tools.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the texts in the order of [`Rules::fields`].
    fn fields(&self) -> [&str; FIELDS] {
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

    /// Extracts the words of each field, up to the field's limit.
    pub(super) fn of(document: &Document, stems: &mut Stems) -> Self {
        let rules = Rules::get();
        let mut text = String::new();
        for (field, field_text) in document.fields().into_iter().enumerate() {
            if field > 0 {
                text.push('\n');
            }
            for (index, token) in text::tokens(field_text, stems, rules.fields[field].words_max)
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

    /// Returns the words of each field.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, impl Iterator<Item = &str>)> {
        let lines = self.0.split('\n').take(FIELDS).enumerate();
        lines.map(|(field, words)| (field, words.split(' ').filter(|word| !word.is_empty())))
    }
}

/// A tool whose words have been extracted, and whose embedding has been computed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexedTool {
    /// The tool's id, which a hit carries.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its stemmed words.
    pub terms: Terms,
    /// Its embedding, for a search by meaning.
    pub embedding: Option<Embedding>,
    /// The ids of the tools that lead to it; see [`Document::entry_tools`].
    pub entry_tools: Arc<[String]>,
    /// Health, quality and use.
    pub signals: RankingSignals,
}

impl IndexedTool {
    /// Creates an entry without an embedding and ranking signals.
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
    stems: Stems,
}

impl TermExtractor {
    /// Creates an extractor.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Extracts the stemmed words of a tool.
    pub fn extract(&mut self, document: &Document) -> Terms {
        Terms::of(document, &mut self.stems)
    }
}

/// Collects the names and descriptions of the parameters, nested fields included.
fn parameters(schema: &Value) -> String {
    const DEPTH_MAX: usize = 3;
    fn walk(schema: &Value, depth: usize, text: &mut String) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            text.push_str(name);
            text.push(' ');
            text.push_str(field["description"].as_str().unwrap_or_default());
            text.push('\n');
            if depth < DEPTH_MAX {
                walk(field, depth + 1, text);
            }
        }
    }
    let mut text = String::new();
    walk(schema, 0, &mut text);
    text
}
