//! The guards of a conversation, for calls that start without its tool set.

use std::sync::Arc;

use super::tool_set::apply;
use crate::{Decorator, Tool, ToolContext, ToolSelector};

/// The [guards](Decorator::is_guard) of a conversation, the innermost first. If the conversation runs inside a call of another
/// conversation or of an agent, the guards of that conversation or agent follow.
///
/// The context of a call carries the guards to calls that start without the tool set of the conversation: the calls of agents,
/// and the follow-up calls of plugins.
#[derive(Clone, Default)]
pub struct Guards(Arc<[(ToolSelector, Arc<dyn Decorator>)]>);

impl Guards {
    /// Selects the guards from a list of decorators, the innermost first.
    pub fn from_decorators<'a>(decorators: impl IntoIterator<Item = &'a (ToolSelector, Arc<dyn Decorator>)>) -> Self {
        let decorators = decorators.into_iter();
        Self(
            decorators
                .filter(|(_, decorator)| decorator.is_guard())
                .cloned()
                .collect(),
        )
    }

    /// Returns the guards that a context carries.
    #[must_use]
    pub fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Returns the guards with the selectors of their tools, the innermost first.
    #[must_use]
    pub fn entries(&self) -> &[(ToolSelector, Arc<dyn Decorator>)] {
        &self.0
    }

    /// Returns the context with these guards added as the inner guards. The guards that the context already carries become the
    /// outer guards. A context that already carries exactly these guards stays unchanged.
    #[must_use]
    pub fn add_to(&self, context: ToolContext) -> ToolContext {
        let outer = Self::of(&context);
        if self.0.is_empty() || Arc::ptr_eq(&self.0, &outer.0) {
            return context;
        }
        if outer.0.is_empty() {
            return context.with_extension(self.clone());
        }
        let entries = self.0.iter().chain(&*outer.0).cloned().collect();
        context.with_extension(Self(entries))
    }

    /// Applies the guards whose selectors select the tool, except the guards that the tool already has.
    #[must_use]
    pub fn apply_to(&self, mut tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        for (selector, guard) in &*self.0 {
            if selector.selects(&tool, None) {
                apply(&mut tool, guard);
            }
        }
        tool
    }
}
