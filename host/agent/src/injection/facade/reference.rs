//! References: the instructions and tools for a subject.

use std::sync::Arc;

use super::Facade;
use toolwit_core::Error;
use toolwit_core::Tool;

/// A subject that a model can work with, such as the user's memory: a description, instructions and tools.
///
/// [`LoopConfig::with_reference`](crate::LoopConfig::with_reference) appends the instructions to the system message and adds
/// the tools. [`facade`](Self::facade) offers both as one tool instead.
///
/// ```
/// use toolwit_agent::injection::Reference;
///
/// let memory = Reference::new("memory", "Facts from earlier conversations.", "Search the memory before you ask the user.");
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
    /// Creates a reference from a name, a description of the subject and instructions on how to work with it.
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
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Returns the text that is appended to the system message: name, description and instructions.
    #[must_use]
    pub fn prompt(&self) -> String {
        format!("# {}\n{}\n\n{}", self.name, self.description, self.instructions)
    }

    /// Returns the tools, for a conversation that declares them without a facade.
    #[must_use]
    pub fn direct_tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Creates a facade that reveals the tools. The instructions become its usage notes.
    ///
    /// # Errors
    /// As [`FacadeBuilder::build`](super::FacadeBuilder::build).
    pub fn facade(&self) -> Result<Facade, Error> {
        let facade = Facade::builder(&self.name, &self.description).tools(self.tools.iter().cloned());
        facade.usage_notes(self.instructions.as_str()).build()
    }
}
