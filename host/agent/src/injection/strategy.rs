//! The port through which tools enter and leave a conversation.

use std::sync::Arc;

use super::change::Injection;
use super::context::InjectionContext;
use super::gate::CallGate;
use super::turn::TurnContext;
use super::view::ConversationView;
use toolwit_core::{NamedTool, Tool, ToolId, ToolProvider};

/// Decides after a tool's result which tools the model sees next.
///
/// The loop asks after every tool that ran, whether or not it failed, in call order. A strategy is a pure function of the
/// context: all that it must remember is in the history, the tools and the entities that the context shows, so that the same
/// conversation always ends in the same tools.
///
/// A closure over the context is a strategy:
///
/// ```
/// use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy};
/// # use std::sync::Arc;
/// # fn with(publish: Arc<dyn toolwit_core::Tool>) -> impl InjectionStrategy {
/// let unlock = move |context: &InjectionContext<'_>| match context.call().name.as_str() {
///     "review" if !context.call().result.is_error() => Injection::add(vec![publish.clone()]),
///     _ => Injection::none(),
/// };
/// # unlock }
/// ```
pub trait InjectionStrategy: Send + Sync {
    /// Looks at a completed call and says what changes.
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection;

    /// Looks at what the user said and says what changes before the model is asked. By default nothing does.
    fn begin_turn(&self, _turn: &TurnContext<'_>) -> Injection {
        Injection::none()
    }

    /// Returns the tools that the conversation has from the start because of this strategy. By default none.
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns how the model should use this strategy's tools, appended to the instructions unless the conversation sets a
    /// guidance of its own. By default nothing is appended.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Makes a tool again that this strategy brought in before, in a conversation that goes on in another process. By default
    /// it knows none; what it adds after a call it is asked about anyway.
    fn restore(&self, _tool: &ToolId) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Says whether the objects of this kind are this strategy's own, so that others do not see them in results. By default
    /// none is.
    fn claims(&self, _provider: &dyn ToolProvider) -> bool {
        false
    }

    /// Says whether a tool may be called now. By default a strategy has no say in any.
    ///
    /// The loop asks before each call. Calls of tools that no strategy watches run together; a call of one that is watched
    /// waits for those before it, and is asked about again then.
    fn gate(&self, _tool: &NamedTool, _scene: &ConversationView<'_>) -> CallGate {
        CallGate::Ungated
    }
}

/// The strategy that never changes anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInjection;

impl InjectionStrategy for NoInjection {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }
}

impl<F> InjectionStrategy for F
where
    F: Fn(&InjectionContext<'_>) -> Injection + Send + Sync,
{
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        self(context)
    }
}
