//! What is known about a tool that a search may look at.

use super::boost::Standing;
use super::rules::{FIELDS, Rules};
use super::text::{self, Stems, Token};

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
    pub standing: Standing,
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

    /// Reads the words of each field, within its bound.
    pub(super) fn tokens(&self, rules: &Rules, stems: &mut Stems) -> [Vec<Token>; FIELDS] {
        let texts = self.fields();
        std::array::from_fn(|field| text::tokens(texts[field], stems, rules.fields[field].words_max))
    }
}
