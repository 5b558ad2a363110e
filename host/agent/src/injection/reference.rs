//! Something that a model can refer to: words about it, and tools for it.

use std::sync::Arc;

use super::facade::Facade;
use toolwit_core::Error;
use toolwit_core::Tool;

/// A subject that a model is told about and can work with: its tools come with a text for the instructions, or stand behind one
/// facade.
///
/// ```
/// use toolwit_agent::injection::Reference;
///
/// let memory = Reference::new("memory", "What the user has told before.", "Look into the memory before you ask.");
/// let as_a_tool = memory.facade()?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Reference {
    name: String,
    description: String,
    instructions: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl Reference {
    /// Names a subject, says what it is, and how to work with it.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            instructions: instructions.into(),
            tools: Vec::new(),
        }
    }

    /// Adds tools that work with the subject.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Returns what the model's instructions say about the subject.
    #[must_use]
    pub fn prompt(&self) -> String {
        format!("# {}\n{}\n\n{}", self.name, self.description, self.instructions)
    }

    /// Returns the tools themselves.
    #[must_use]
    pub fn direct_tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Makes one tool of the subject, which opens into its tools and tells how to work with them.
    ///
    /// # Errors
    /// As [`FacadeBuilder::build`](super::FacadeBuilder::build).
    pub fn facade(&self) -> Result<Facade, Error> {
        let facade = Facade::builder(&self.name, &self.description).tools(self.tools.iter().cloned());
        facade.usage_notes(self.instructions.as_str()).build()
    }
}
