//! Something to know together with the tools to use it.

use std::sync::Arc;

use crate::error::Error;
use crate::injection::Facade;
use crate::tool::{Tool, ToolObject};

/// A text for the model and the tools that go with it: a memory, a manual, an API.
///
/// Given to a conversation, the text goes into its instructions and the tools are there from the start. As a tool only, it is one
/// facade, and the text comes with what it opens.
///
/// ```
/// use toolwit::{Reference, Tool};
///
/// # fn example(recall: impl Tool + 'static) -> Result<(), toolwit::Error> {
/// let memory = Reference::new("memory", "What the user said in earlier conversations.")
///     .with_notes("Look here before you ask the user again.")
///     .with_tool(recall);
/// let facade = memory.facade()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Reference {
    name: String,
    description: String,
    notes: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Reference {
    /// Names something to know, and says what it is.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            notes: None,
            tools: Vec::new(),
        }
    }

    /// Says how to use it.
    #[must_use]
    pub fn with_notes(mut self, notes: impl Into<String>) -> Self {
        self.notes = Some(notes.into());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds the methods of an object as tools.
    ///
    /// # Errors
    /// As [`ToolObject::tools`].
    pub fn with_tool_object(self, object: impl Into<ToolObject>) -> Result<Self, Error> {
        let tools = object.into().tools()?;
        Ok(self.with_tools(tools))
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Writes what goes into the instructions of a conversation.
    #[must_use]
    pub fn instructions(&self) -> String {
        let heading = format!("# {}\n{}", self.name, self.description);
        match &self.notes {
            Some(notes) => format!("{heading}\n{notes}"),
            None => heading,
        }
    }

    /// Makes it one tool, which opens into its tools.
    ///
    /// # Errors
    /// As [`FacadeBuilder::build`](crate::FacadeBuilder::build).
    pub fn facade(&self) -> Result<Facade, Error> {
        let facade = Facade::builder(&self.name, &self.description).tools(self.tools.iter().cloned());
        match &self.notes {
            Some(notes) => facade.usage_notes(notes.as_str()).build(),
            None => facade.build(),
        }
    }
}
