//! The searchable text of a tool.

use super::boost::RankingSignals;
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

    /// Sets the names and descriptions of the parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl Into<String>) -> Self {
        self.parameters = parameters.into();
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
    pub(super) fn of(document: &Document, rules: &Rules, stems: &mut Stems) -> Self {
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

/// A tool whose words have been extracted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexedTool {
    /// The tool's id, which a hit carries.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its stemmed words.
    pub terms: Terms,
    /// Health, quality and use.
    pub signals: RankingSignals,
}

impl IndexedTool {
    /// Creates an entry without ranking signals.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, terms: Terms) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            terms,
            signals: RankingSignals::default(),
        }
    }
}

/// Extracts the stemmed words of many tools, with a shared cache of stems.
#[derive(Clone, Debug, Default)]
pub struct TermExtractor {
    rules: Rules,
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
        Terms::of(document, &self.rules, &mut self.stems)
    }
}
