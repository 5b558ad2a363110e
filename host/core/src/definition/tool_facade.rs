//! Facades: tools that reveal further tools when they are called.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Arguments, Tool, ToolContext};

/// A tool that reveals further tools when it is called.
///
/// A call returns a result with [`RevealedTools`]. Through this trait, the agent loop reads the inner tools before a call, and
/// restores revealed tools without a call.
#[async_trait]
pub trait ToolFacade: Send + Sync {
    /// Returns the inner tools that exist before a call, in all categories. The list is empty if each call creates its tools.
    fn fixed_tools(&self) -> &[Arc<dyn Tool>];

    /// Returns whether only the inner tools can be called, from the call that reveals them until the turn ends.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Restores the tools that a call with these arguments revealed, for a conversation that continues in another process.
    /// Returns `None` if only a call can create these tools, or if they must be fetched.
    fn reopen(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools>;

    /// Makes the tools again that a call with these arguments revealed, for a conversation that continues in another process or
    /// with another caller. Fetches them if necessary. Returns `None` if only a call can create these tools, or if they cannot
    /// be fetched. By default, the tools are those of [`reopen`](Self::reopen).
    async fn make_again(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools> {
        self.reopen(arguments, context)
    }
}

/// The tools that a call of a facade revealed.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RevealedTools {
    /// The inner tools, which may include facades.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The author's notes on combining the tools.
    pub usage_notes: Option<Arc<str>>,
}

impl RevealedTools {
    /// Creates a list of tools without usage notes.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools,
            usage_notes: None,
        }
    }

    /// Adds notes on combining the tools.
    #[must_use]
    pub fn with_usage_notes(mut self, notes: impl Into<Arc<str>>) -> Self {
        self.usage_notes = Some(notes.into());
        self
    }
}

impl fmt::Debug for RevealedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool_names = self.tools.iter().map(|tool| tool.definition().name());
        f.debug_list().entries(tool_names).finish()
    }
}
