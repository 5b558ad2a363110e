//! Several strategies combined into one.

use std::sync::Arc;

use async_trait::async_trait;

use super::facade::Unfolding;
use super::strategy::{CallGate, Injection, InjectionStrategy, TriggeredInjection};
use super::view::{CompletedCall, ConversationView, InjectionContext, TurnContext};
use toolwit_core::{Error, NamedTool, Tool, ToolId, ToolProvider, ToolSelector};

/// Several strategies as one. They are evaluated in order on the same view, and their changes are merged. If a strategy
/// [claims](InjectionStrategy::claims) an object of a result, the object is hidden from the strategies that claim no object of
/// this result.
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
    /// Creates an empty chain, which changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a chain that starts with [`Unfolding`], as a base for further strategies.
    #[must_use]
    pub fn with_unfolding() -> Self {
        Self::new().then(Unfolding::new())
    }

    /// Appends a strategy.
    #[must_use]
    pub fn then(mut self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.strategies.push(Arc::new(strategy));
        self
    }

    /// Returns the number of strategies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strategies.len()
    }

    /// Returns whether the chain has no strategies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strategies.is_empty()
    }

    /// Returns a copy of the call without the objects that a strategy claims, or `None` if no object is claimed.
    fn without_claimed_objects(&self, call: &CompletedCall) -> Option<CompletedCall> {
        let is_unclaimed = |provider: &Arc<dyn ToolProvider>| !self.claims(provider.as_ref());
        if call.result.providers.iter().all(is_unclaimed) {
            return None;
        }
        let mut call = call.clone();
        call.result.providers.retain(is_unclaimed);
        Some(call)
    }
}

#[async_trait]
impl InjectionStrategy for StrategyChain {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut merged = Injection::none();
        let call_without_claimed = self.without_claimed_objects(context.call());
        for strategy in &self.strategies {
            let claims = |provider: &Arc<dyn ToolProvider>| strategy.claims(provider.as_ref());
            let injection = match &call_without_claimed {
                Some(call) if !context.call().result.providers.iter().any(claims) => {
                    strategy.evaluate(&InjectionContext::after(call, context.view()))
                }
                _ => strategy.evaluate(context),
            };
            merged.merge(injection);
        }
        merged
    }

    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.strategies
            .iter()
            .flat_map(|strategy| strategy.initial_tools())
            .collect()
    }

    /// Returns the guidance of the first strategy that has one.
    fn guidance(&self) -> Option<&str> {
        self.strategies.iter().find_map(|strategy| strategy.guidance())
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.strategies.iter().find_map(|strategy| strategy.restore(tool))
    }

    fn requires_events(&self) -> bool {
        self.strategies.iter().any(|strategy| strategy.requires_events())
    }

    fn claims(&self, provider: &dyn ToolProvider) -> bool {
        self.strategies.iter().any(|strategy| strategy.claims(provider))
    }

    fn referenced_tools(&self) -> Vec<ToolSelector> {
        self.strategies
            .iter()
            .flat_map(|strategy| strategy.referenced_tools())
            .collect()
    }

    fn check(&self) -> Result<(), Error> {
        self.strategies.iter().try_for_each(|strategy| strategy.check())
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let mut merged = Injection::none();
        for strategy in &self.strategies {
            merged.merge(strategy.begin_turn(turn).await);
        }
        merged
    }

    async fn recover(&self, lost: &[ToolId], view: &ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
        let mut recovered: Vec<Arc<dyn Tool>> = Vec::new();
        for strategy in &self.strategies {
            let is_recovered = |id: &ToolId| recovered.iter().any(|tool| tool.definition().id == *id);
            let still_lost: Vec<_> = lost.iter().filter(|id| !is_recovered(id)).cloned().collect();
            if still_lost.is_empty() {
                break;
            }
            recovered.extend(strategy.recover(&still_lost, view).await);
        }
        recovered
    }

    async fn change_caller(&self, view: &ConversationView<'_>) -> Vec<TriggeredInjection> {
        let mut changes = Vec::new();
        for strategy in &self.strategies {
            changes.extend(strategy.change_caller(view).await);
        }
        changes
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
        let tool = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text(""))
        });
        Arc::new(tool.unwrap())
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
    fn strategies_are_evaluated_in_order_and_their_changes_are_merged() {
        let chain = StrategyChain::new()
            .then(NoInjection)
            .then(|_: &InjectionContext<'_>| Injection::replace(ToolId::native("old"), vec![tool("first")]))
            .then(|context: &InjectionContext<'_>| {
                assert!(context.tools().is_empty(), "each strategy sees the same view");
                Injection::add(vec![tool("second")])
            })
            .then(|_: &InjectionContext<'_>| Injection::remove(vec![ToolId::native("older")]));
        let merged = evaluate(&chain);
        let added: Vec<_> = merged.add.iter().map(|tool| tool.definition().name()).collect();
        assert_eq!(added, ["first", "second"]);
        assert_eq!(merged.remove, [ToolId::native("old"), ToolId::native("older")]);
    }

    /// A strategy whose guidance is this text, with one initial tool of the same name.
    struct GuidedStrategy(&'static str);

    impl InjectionStrategy for GuidedStrategy {
        fn evaluate(&self, _: &InjectionContext<'_>) -> Injection {
            Injection::none()
        }

        fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![tool(self.0)]
        }

        fn guidance(&self) -> Option<&str> {
            Some(self.0)
        }
    }

    #[test]
    fn a_chain_in_a_chain_has_the_initial_tools_of_all_strategies_and_the_first_guidance() {
        let inner = StrategyChain::new()
            .then(NoInjection)
            .then(GuidedStrategy("first"))
            .then(GuidedStrategy("second"));
        let chain = StrategyChain::new().then(inner).then(GuidedStrategy("third"));
        let tools = chain.initial_tools();
        let names: Vec<_> = tools.iter().map(|tool| tool.definition().name()).collect();
        assert_eq!(names, ["first", "second", "third"]);
        assert_eq!(chain.guidance(), Some("first"));
        assert_eq!(StrategyChain::new().guidance(), None);
    }

    // accept: 24
    #[test]
    fn no_injection_changes_nothing() {
        assert!(evaluate(&NoInjection).is_none());
        assert!(evaluate(&StrategyChain::new()).is_none());
    }
}
