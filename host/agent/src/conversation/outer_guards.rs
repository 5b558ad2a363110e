//! Guards of a conversation that apply to the agents inside it.

use std::sync::Arc;

use toolwit_core::{Decorator, ToolContext, ToolSelector};

/// The guards of a conversation and of those around it. The context of its tools carries them to the conversations of agents.
#[derive(Clone, Default)]
pub(super) struct OuterGuards(Vec<(ToolSelector, Arc<dyn Decorator>)>);

impl OuterGuards {
    /// Returns the guards of the conversation around a new one.
    pub(super) fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Applies the guards around the decorators of a conversation. A guard does not have to select a tool of an agent.
    pub(super) fn around(
        self,
        decorators: impl IntoIterator<Item = (ToolSelector, Arc<dyn Decorator>)>,
    ) -> Vec<(ToolSelector, Arc<dyn Decorator>)> {
        decorators.into_iter().chain(self.0).collect()
    }

    /// Returns the guards among the decorators of a conversation.
    pub(super) fn among(decorators: &[(ToolSelector, Arc<dyn Decorator>)]) -> Self {
        let guards = decorators.iter().filter(|(_, decorator)| decorator.is_guard());
        Self(guards.cloned().collect())
    }
}
