//! The trait of strategies that add tools to a conversation and remove them.

use std::sync::Arc;

use async_trait::async_trait;

use super::call_gate::CallGate;
use super::injection::Injection;
use crate::injection::view::{ConversationView, InjectionContext, TurnContext};
use toolwit_core::{NamedTool, Tool, ToolId, ToolProvider, ToolSelector};

/// Decides after each tool result which tools the model sees next.
///
/// The loop evaluates the strategy after every tool that ran, whether it succeeded or failed, in call order. The strategies
/// of this crate are pure functions of the context: they store only configuration, and derive everything else from the
/// conversation's history, tools, entities, lineage and call log. The same conversation therefore always ends with the same
/// tools, after a resume, in a replay and in a fork. A strategy that follows an outside source of tools, such as a plugin
/// directory, should read that source only in [`begin_turn`](Self::begin_turn), so that a turn sees one version of it.
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
#[async_trait]
pub trait InjectionStrategy: Send + Sync {
    /// Returns the changes that follow from a completed call.
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection;

    /// Returns the changes that follow from the user's message, before the first inference of the turn. By default, it
    /// changes nothing.
    ///
    /// The inference waits for it, so that a strategy can load the tools that it adds. If the run is stopped in the meantime, the
    /// future is dropped and nothing changes.
    async fn begin_turn(&self, _turn: &TurnContext<'_>) -> Injection {
        Injection::none()
    }

    /// Returns the tools that the strategy adds at the start of a conversation. The default is an empty list.
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns instructions on how to use this strategy's tools. They are appended to the system prompt unless the
    /// conversation sets its own guidance. By default nothing is appended.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Recreates a tool that this strategy injected earlier, when a conversation is resumed in another process. By default
    /// it recreates nothing; tools that `evaluate` adds are recovered by evaluating the recorded calls again.
    fn restore(&self, _tool: &ToolId) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Returns whether the state of this strategy depends on the call log; `false` by default. The log is restored from
    /// the events of the conversation: if this is `true`, building fails for a history with calls and without events.
    fn requires_events(&self) -> bool {
        false
    }

    /// Returns whether this strategy claims the objects of this kind, so that other strategies do not see them in results.
    /// By default it claims none.
    fn claims(&self, _provider: &dyn ToolProvider) -> bool {
        false
    }

    /// Returns the tools to which the strategy refers. Building a conversation that cannot have one of them fails,
    /// unless the reference is [late](ToolSelector::is_late). By default the list is empty.
    fn references(&self) -> Vec<ToolSelector> {
        Vec::new()
    }

    /// Decides whether a tool may be called now. By default a strategy gates no tool.
    ///
    /// The loop checks the gate before each call. Calls of ungated tools run concurrently. A call of a gated tool waits for
    /// the calls before it, and its gate is then checked again.
    fn gate(&self, _tool: &NamedTool, _view: &ConversationView<'_>) -> CallGate {
        CallGate::Ungated
    }
}

/// A strategy that never changes the tools.
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
