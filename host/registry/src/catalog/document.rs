//! What is known about a tool that a search may look at.

use super::boost::RankingSignals;
use super::rules::{FIELDS, Rules};
use super::text::{self, Stems};

/// A tool as a search sees it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The tool's id, which a hit carries.
    pub id: String,
    /// The tool's name, in any way of writing: `get_weather`, `getWeather`, `weather.get`.
    pub name: String,
    /// Names and descriptions of its parameters.
    pub parameters: String,
    /// What it does.
    pub description: String,
    /// Words that its author filed it under.
    pub tags: String,
    /// The one shelf that it stands on.
    pub category: String,
    /// When to use it.
    pub use_case: String,
    /// Requests that it answers.
    pub examples: String,
    /// What speaks for it apart from its words.
    pub standing: RankingSignals,
}

impl Document {
    /// Describes a tool by its id, name and description.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            ..Self::default()
        }
    }

    /// Adds what is said about its parameters.
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

/// The words of a tool as they are compared, by field; a text that can be kept.
///
/// Fields are lines and words are parted by spaces: a stem holds letters and digits only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms(String);

impl Terms {
    /// Takes what [`Terms::text`] gave.
    #[must_use]
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    /// Returns them as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Reads the words of each field, within its bound.
    pub(super) fn of(document: &Document, rules: &Rules, stems: &mut Stems) -> Self {
        let mut text = String::new();
        for (field, said) in document.fields().into_iter().enumerate() {
            if field > 0 {
                text.push('\n');
            }
            for (at, token) in text::tokens(said, stems, rules.fields[field].words_max)
                .iter()
                .enumerate()
            {
                if at > 0 {
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

/// A tool as the index takes it: its words were read before.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexedTool {
    /// The tool's id, which a hit carries.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its words.
    pub terms: Terms,
    /// What speaks for it apart from its words.
    pub standing: RankingSignals,
}

impl IndexedTool {
    /// Puts together what the index takes.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, terms: Terms) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            terms,
            standing: RankingSignals::default(),
        }
    }
}

/// Reads the words of many tools.
#[derive(Clone, Debug, Default)]
pub struct TermExtractor {
    rules: Rules,
    stems: Stems,
}

impl TermExtractor {
    /// Makes a reader.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the words of a tool.
    pub fn read(&mut self, document: &Document) -> Terms {
        Terms::of(document, &self.rules, &mut self.stems)
    }
}
