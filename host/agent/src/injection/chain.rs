//! Several strategies as one.

use std::sync::Arc;

use super::change::Injection;
use super::context::{CompletedCall, InjectionContext};
use super::gate::CallGate;
use super::strategy::InjectionStrategy;
use super::turn::TurnContext;
use super::unfolding::Unfolding;
use super::view::ConversationView;
use toolwit_core::{NamedTool, Tool, ToolId, ToolProvider};

/// Strategies that are all asked, in order, about the same moment; what they want is merged.
///
/// ```
/// use toolwit_agent::injection::{StrategyChain, EntityTools, Injection, InjectionContext};
///
/// let strategies = StrategyChain::new()
///     .then(EntityTools)
///     .then(|_: &InjectionContext<'_>| Injection::none());
/// assert_eq!(strategies.len(), 2);
/// ```
#[derive(Clone, Default)]
pub struct StrategyChain {
    strategies: Vec<Arc<dyn InjectionStrategy>>,
}

impl StrategyChain {
    /// Makes an empty chain, which changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a chain that begins with [`Unfolding`]: the one to add your own strategies to.
    #[must_use]
    pub fn with_unfolding() -> Self {
        Self::new().then(Unfolding::new())
    }

    /// Asks one more strategy after those before it.
    #[must_use]
    pub fn then(mut self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.strategies.push(Arc::new(strategy));
        self
    }

    /// Returns how many strategies there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strategies.len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strategies.is_empty()
    }
}

impl StrategyChain {
    /// Makes the call as it looks to those who claim none of its objects; `None` where nobody claims any.
    fn unclaimed(&self, call: &CompletedCall) -> Option<CompletedCall> {
        let is_free = |provider: &Arc<dyn ToolProvider>| !self.claims(provider.as_ref());
        if call.result.providers.iter().all(is_free) {
            return None;
        }
        let mut call = call.clone();
        call.result.providers.retain(is_free);
        Some(call)
    }
}

impl InjectionStrategy for StrategyChain {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut merged = Injection::none();
        let unclaimed = self.unclaimed(context.call());
        for strategy in &self.strategies {
            let claims = |provider: &Arc<dyn ToolProvider>| strategy.claims(provider.as_ref());
            let injection = match &unclaimed {
                Some(call) if !context.call().result.providers.iter().any(claims) => {
                    strategy.evaluate(&InjectionContext::after(call, context.view()))
                }
                _ => strategy.evaluate(context),
            };
            merged.merge(injection);
        }
        merged
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.strategies.iter().find_map(|strategy| strategy.restore(tool))
    }

    fn claims(&self, provider: &dyn ToolProvider) -> bool {
        self.strategies.iter().any(|strategy| strategy.claims(provider))
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let mut merged = Injection::none();
        for strategy in &self.strategies {
            merged.merge(strategy.begin_turn(turn));
        }
        merged
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let gates = self.strategies.iter().map(|strategy| strategy.gate(tool, view));
        gates.fold(CallGate::Ungated, CallGate::and)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::injection::{CompletedCall, Entities, NoInjection};
    use toolwit_core::{Arguments, NativeTool, ToolName, ToolResult, ToolSet};

    fn tool(name: &str) -> Arc<dyn Tool> {
        let made = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text(""))
        });
        Arc::new(made.unwrap())
    }

    fn evaluate(strategy: &dyn InjectionStrategy) -> Injection {
        let call = CompletedCall::new(
            "1",
            ToolName::parse("x").unwrap(),
            Arguments::new(),
            tool("x"),
            ToolResult::text(""),
        );
        let (tools, entities) = (ToolSet::new(), Entities::default());
        strategy.evaluate(&InjectionContext::new(&[], &tools, &entities, &call, 1))
    }

    // accept: 21, accept: 24
    #[test]
    fn strategies_are_asked_in_order_and_merged() {
        let chain = StrategyChain::new()
            .then(NoInjection)
            .then(|_: &InjectionContext<'_>| Injection::replace(ToolId::native("old"), vec![tool("first")]))
            .then(|context: &InjectionContext<'_>| {
                assert!(context.tools().is_empty(), "each sees the same moment");
                Injection::add(vec![tool("second")])
            })
            .then(|_: &InjectionContext<'_>| Injection::remove(vec![ToolId::native("older")]));
        let merged = evaluate(&chain);
        let added: Vec<_> = merged.add.iter().map(|tool| tool.definition().name()).collect();
        assert_eq!(added, ["first", "second"]);
        assert_eq!(merged.remove, [ToolId::native("old"), ToolId::native("older")]);
    }

    // accept: 24
    #[test]
    fn no_injection_changes_nothing() {
        assert!(evaluate(&NoInjection).is_none());
        assert!(evaluate(&StrategyChain::new()).is_none());
    }
}
