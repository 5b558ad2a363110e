//! The conversation at the start of a turn.

use std::ops::Deref;

use super::conversation::ConversationView;
use toolwit_core::{Message, Role, ToolSet};

/// The conversation at the start of a turn, as a [`ConversationView`]. Its last message is the user's, except in a
/// [`ToolSession`](crate::ToolSession), whose turns have no message.
#[derive(Clone, Copy)]
pub struct TurnContext<'a> {
    view: ConversationView<'a>,
}

impl<'a> TurnContext<'a> {
    /// Creates the context of a turn that starts after the last message of `history`.
    #[must_use]
    pub fn new(history: &'a [Message], tools: &'a ToolSet) -> Self {
        Self::at(ConversationView::new(history, tools))
    }

    /// Creates the context of a turn that starts at this view.
    #[must_use]
    pub fn at(view: ConversationView<'a>) -> Self {
        Self { view }
    }

    /// Returns the view of the conversation.
    #[must_use]
    pub fn view(&self) -> ConversationView<'a> {
        self.view
    }

    /// Returns the texts of the messages with the role of the user, latest first. A summary of earlier messages also has this
    /// role.
    pub fn user_messages(&self) -> impl Iterator<Item = &'a str> {
        let history = self.view.history().iter().rev();
        history
            .filter(|message| matches!(message.role, Role::User { .. }))
            .map(Message::content)
    }
}

impl<'a> Deref for TurnContext<'a> {
    type Target = ConversationView<'a>;

    fn deref(&self) -> &ConversationView<'a> {
        &self.view
    }
}
