//! Sources of tools.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::Error;
use toolwit_core::{Tool, ToolContext, ToolId};

/// A source of tools: plugins, Rust code, or a server that needs a connection.
///
/// A source is queried when its tools are first needed. It receives the caller's context, which can hold the token that a
/// server requires. A source may cache its tools between queries. The tools that it returns belong to the caller: in a
/// conversation, they are used only in turns whose context has the same [`Caller`](toolwit_core::Caller).
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Returns the name of the source. The setting `provider` of a group refers to this name.
    fn name(&self) -> &str;

    /// Returns the names and ids of the tools if the source can list them without being contacted. The default
    /// implementation returns `None`.
    ///
    /// If a source returns names, a group without a provider queries the source only if one of these names belongs to the
    /// group.
    fn listed_names(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns whether the source can have the tool with this id. A conversation that is resumed contacts only the sources that
    /// can have one of its tools. By default, a source can have every tool, or those in its [list](Self::listed_names).
    fn may_have(&self, tool: &ToolId) -> bool {
        self.listed_names()
            .is_none_or(|names| names.iter().any(|name| name == tool.as_str()))
    }

    /// Returns the tools that the source returned last for this caller, without contacting the source. The default
    /// implementation returns `None`.
    ///
    /// A source whose tools change during a call returns the new tools here, so that they are declared in the next request.
    fn cached_tools(&self, _context: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        None
    }

    /// Returns whether the source is being contacted for this caller, so that its tools will come later. The default
    /// implementation returns `false`.
    fn is_starting(&self, _context: &ToolContext) -> bool {
        false
    }

    /// Returns the tools of the source.
    ///
    /// # Errors
    /// If the source cannot be reached.
    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error>;
}

/// A source with a fixed list of tools.
pub struct FixedTools {
    name: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl FixedTools {
    /// Creates a source from a name and its tools.
    #[must_use]
    pub fn new(name: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            name: name.into(),
            tools,
        }
    }
}

#[async_trait]
impl ToolSource for FixedTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn listed_names(&self) -> Option<Vec<String>> {
        let definitions = self.tools.iter().map(|tool| tool.definition());
        let names = definitions.flat_map(|definition| [definition.name().to_owned(), definition.id.to_string()]);
        Some(names.collect())
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        Ok(self.tools.clone())
    }
}
