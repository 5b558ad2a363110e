//! What a strategy sees when the user has spoken.

use crate::tool::{Message, Role, ToolSet};

/// The conversation at the moment when a turn begins.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct TurnContext<'a> {
    history: &'a [Message],
    tools: &'a ToolSet,
}

impl<'a> TurnContext<'a> {
    /// Describes the moment after the last message of `history`, which is the user's.
    #[must_use]
    pub fn new(history: &'a [Message], tools: &'a ToolSet) -> Self {
        Self { history, tools }
    }

    /// Returns what was said, up to the user's message.
    #[must_use]
    pub fn history(&self) -> &'a [Message] {
        self.history
    }

    /// Returns the tools that can be called.
    #[must_use]
    pub fn tools(&self) -> &'a ToolSet {
        self.tools
    }

    /// Returns what the user said, the latest first.
    pub fn user_messages(&self) -> impl Iterator<Item = &'a str> {
        let said = self
            .history
            .iter()
            .rev()
            .filter(|message| matches!(message.role, Role::User { .. }));
        said.map(Message::content)
    }
}
