//! A strategy that keeps the tools of plugins current.

use async_trait::async_trait;

use super::PLUGIN_GUIDANCE;
use super::follower::Follower;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_registry::LiveRegistry;
use toolwit_sandbox::Scope;

/// Replaces the tools of changed plugins, and removes those of removed ones, when a turn begins. It adds no tools:
/// other strategies or the roles of the conversation add them.
pub(crate) struct FollowedTools(Follower);

impl FollowedTools {
    /// Follows those tools of a registry whose ids `may_use` accepts. Resources that the tools return live in `scope`.
    pub(crate) fn among(
        registry: LiveRegistry,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Follower::new(registry, scope, may_use))
    }
}

#[async_trait]
impl InjectionStrategy for FollowedTools {
    fn guidance(&self) -> Option<&str> {
        Some(PLUGIN_GUIDANCE)
    }

    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let changes = self.0.advance();
        let injection = changes.map_or_else(Injection::none, |(before, now)| {
            self.0.replacements(&before, &now, turn.tools())
        });
        self.0.retain_components(turn.tools(), &injection).await;
        injection
    }
}
