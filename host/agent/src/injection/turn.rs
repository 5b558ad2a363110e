//! What a strategy sees when the user has spoken.

use std::ops::Deref;

use super::scene::Scene;
use toolwit_core::{Message, Role, ToolSet};

/// The conversation at the moment when a turn begins: a [`Scene`] whose last message is the user's.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct TurnContext<'a> {
    scene: Scene<'a>,
}

impl<'a> TurnContext<'a> {
    /// Describes the moment after the last message of `history`, which is the user's.
    #[must_use]
    pub fn new(history: &'a [Message], tools: &'a ToolSet) -> Self {
        Self::at(Scene::new(history, tools))
    }

    /// Describes the beginning of a turn in a scene.
    #[must_use]
    pub fn at(scene: Scene<'a>) -> Self {
        Self { scene }
    }

    /// Returns the conversation as it is.
    #[must_use]
    pub fn scene(&self) -> Scene<'a> {
        self.scene
    }

    /// Returns what the user said, the latest first.
    pub fn user_messages(&self) -> impl Iterator<Item = &'a str> {
        let said = self
            .scene
            .history()
            .iter()
            .rev()
            .filter(|message| matches!(message.role, Role::User { .. }));
        said.map(Message::content)
    }
}

impl<'a> Deref for TurnContext<'a> {
    type Target = Scene<'a>;

    fn deref(&self) -> &Scene<'a> {
        &self.scene
    }
}
