//! A strategy that updates the tools of changed plugins.

use async_trait::async_trait;

use super::PLUGIN_GUIDANCE;
use super::registry_view::RegistryView;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_registry::LiveRegistry;
use toolwit_sandbox::Scope;

/// Replaces the tools of changed plugins and removes the tools of removed plugins, when a turn begins. It never adds
/// another tool: other strategies or the roles of the conversation do that.
pub(crate) struct PluginUpdates(RegistryView);

impl PluginUpdates {
    /// Updates those tools of a registry whose ids `may_use` accepts. Resources that the tools return live in `scope`.
    pub(crate) fn among(
        registry: LiveRegistry,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(RegistryView::new(registry, scope, may_use))
    }
}

#[async_trait]
impl InjectionStrategy for PluginUpdates {
    fn guidance(&self) -> Option<&str> {
        Some(PLUGIN_GUIDANCE)
    }

    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let snapshots = self.0.advance();
        let injection = snapshots.map_or_else(Injection::none, |(previous, current)| {
            self.0.replacements(&previous, &current, turn.tools())
        });
        self.0.retain_components(turn.tools(), &injection).await;
        injection
    }
}
