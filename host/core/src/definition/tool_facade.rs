//! Tools that open into others.

use std::fmt;
use std::sync::Arc;

use crate::{Arguments, Tool, ToolContext};

/// What stands behind a tool that opens into others: a facade.
///
/// A call of the facade gives a result with [`RevealedTools`]; what is here lets the loop know about the inner tools before that,
/// and make them again without a call.
pub trait ToolFacade: Send + Sync {
    /// Returns the tools that are inside whatever the arguments are; none where they are made for each call.
    fn folded(&self) -> &[Arc<dyn Tool>];

    /// Whether only the inner tools can be called from the moment when they are open until the turn ends.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Makes the tools that a call with these arguments opened, for a conversation that goes on in another process. `None`
    /// where only a call can make them.
    fn reopen(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools>;
}

/// The tools into which a facade opened.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RevealedTools {
    /// The inner tools; a facade may be among them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// How the tools go together, in the author's words.
    pub usage_notes: Option<Arc<str>>,
}

impl RevealedTools {
    /// Takes the inner tools.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools,
            usage_notes: None,
        }
    }

    /// Adds how the tools go together.
    #[must_use]
    pub fn with_usage_notes(mut self, notes: impl Into<Arc<str>>) -> Self {
        self.usage_notes = Some(notes.into());
        self
    }
}

impl fmt::Debug for RevealedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tools.iter().map(|tool| tool.definition().name());
        f.debug_list().entries(names).finish()
    }
}
