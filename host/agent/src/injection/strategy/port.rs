//! The trait of strategies that add, remove and lock the tools of a conversation.

use std::sync::Arc;

use async_trait::async_trait;

use super::call_gate::CallGate;
use super::injection::{Injection, TriggeredInjection};
use crate::injection::view::{ConversationView, InjectionContext, TurnContext};
use toolwit_core::{Error, NamedTool, Tool, ToolId, ToolProvider, ToolSelector};

/// Decides after each tool result which tools the model sees next.
///
/// The loop evaluates the strategy after every tool that ran, whether it succeeded or failed, in call order, and after every
/// late result. The strategies of this crate store only configuration and caches, and derive everything else from the
/// [`ConversationView`]. The same conversation therefore always ends with the same tools, after a resume, in a replay and in a
/// fork. There are two exceptions: [`RegisteredTools`](crate::injection::RegisteredTools) follows a shared tool set that the
/// application changes, and [`Unlock::by_blackboard`](crate::injection::Unlock::by_blackboard) depends on a blackboard.
///
/// A strategy that follows another external source of tools, such as a plugin directory, should read this source only in
/// [`begin_turn`](Self::begin_turn), so that the source does not change within a turn.
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

    /// Returns the changes at the start of a turn, before its first inference, such as tools that fit the user's message. By
    /// default nothing changes. In a [`ToolSession`](crate::ToolSession), a turn has no message.
    ///
    /// The inference waits for the returned future, so that a strategy can load the tools that it adds. If the run is stopped
    /// in the meantime, the future is dropped and nothing changes.
    async fn begin_turn(&self, _turn: &TurnContext<'_>) -> Injection {
        Injection::none()
    }

    /// Returns the tools that the strategy adds at the start of a conversation. The default is an empty list.
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns instructions on how to use this strategy's tools. They are appended to the system prompt unless the
    /// conversation or an earlier strategy has guidance already. By default nothing is appended.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Creates a tool that this strategy can inject, from the id of the tool. The main use is a conversation that is resumed in
    /// another process, for the tools that the strategy injected before. Returns `None` by default, or if the strategy cannot
    /// create the tool now; [`recover`](Self::recover) can then create it later. A strategy need not restore the tools that `evaluate` adds, since a resume evaluates the recorded calls
    /// again.
    fn restore(&self, _tool: &ToolId) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Creates the tools that a resume could not restore, such as those of a server that must be contacted first. `lost` has the
    /// ids of all lost tools, also of those that other strategies injected. By default no tool is recovered.
    ///
    /// The method is called before a resumed run continues and when a turn begins, and again as long as a strategy recovers a
    /// tool. It contacts only the sources that can have one of the lost tools.
    async fn recover(&self, _lost: &[ToolId], _view: &ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns the changes after which the conversation has no tool that this strategy made for another caller. Called after
    /// [`begin_turn`](Self::begin_turn), when a turn begins whose context has another [`Caller`](toolwit_core::Caller) than the
    /// previous turn. By default nothing changes: a strategy that makes tools in `begin_turn` also replaces them there.
    async fn change_caller(&self, _view: &ConversationView<'_>) -> Vec<TriggeredInjection> {
        Vec::new()
    }

    /// Returns whether the decisions of this strategy depend on earlier calls; `false` by default. A resume restores the call
    /// log from the events of the conversation. If this method returns `true`, building therefore fails for a history with
    /// calls but without events. [`StateMachine::with_initial_state`](crate::injection::StateMachine::with_initial_state) and
    /// [`Playbook::restarted`](crate::injection::Playbook::restarted) make this method return `false`.
    fn requires_events(&self) -> bool {
        false
    }

    /// Returns whether this strategy claims an object of a result. A [`StrategyChain`](crate::injection::StrategyChain) hides
    /// claimed objects from the strategies that claim no object of the result. By default no object is claimed.
    fn claims(&self, _provider: &dyn ToolProvider) -> bool {
        false
    }

    /// Returns selectors of the tools to which the strategy refers. Building a conversation fails if the conversation does not
    /// have one of these tools and no strategy can restore it, unless the selector is [late](ToolSelector::is_late). By default
    /// the list is empty.
    fn referenced_tools(&self) -> Vec<ToolSelector> {
        Vec::new()
    }

    /// Checks the configuration of the strategy. Building a conversation fails with the error. By default every configuration
    /// is valid.
    ///
    /// # Errors
    /// The first mistake in the configuration.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Decides whether a tool may be called now. By default a strategy gates no tool.
    ///
    /// The loop checks the gate before each call. A call of an ungated tool can run concurrently with other calls. A call of a
    /// gated tool waits for the earlier calls of the response, and its gate is then checked again.
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
