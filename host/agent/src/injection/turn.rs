//! What a strategy sees when the user has spoken.

use std::ops::Deref;

use super::view::ConversationView;
use toolwit_core::{Message, Role, ToolSet};

/// The conversation at the moment when a turn begins: a [`ConversationView`] whose last message is the user's.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct TurnContext<'a> {
    view: ConversationView<'a>,
}

impl<'a> TurnContext<'a> {
    /// Describes the moment after the last message of `history`, which is the user's.
    #[must_use]
    pub fn new(history: &'a [Message], tools: &'a ToolSet) -> Self {
        Self::at(ConversationView::new(history, tools))
    }

    /// Describes the beginning of a turn in a view.
    #[must_use]
    pub fn at(view: ConversationView<'a>) -> Self {
        Self { view }
    }

    /// Returns the conversation as it is.
    #[must_use]
    pub fn view(&self) -> ConversationView<'a> {
        self.view
    }

    /// Returns what the user said, the latest first.
    pub fn user_messages(&self) -> impl Iterator<Item = &'a str> {
        let said = self
            .view
            .history()
            .iter()
            .rev()
            .filter(|message| matches!(message.role, Role::User { .. }));
        said.map(Message::content)
    }
}

impl<'a> Deref for TurnContext<'a> {
    type Target = ConversationView<'a>;

    fn deref(&self) -> &ConversationView<'a> {
        &self.view
    }
}
