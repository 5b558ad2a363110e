//! A strategy that shows all tools of a registry.

use std::sync::Arc;

use async_trait::async_trait;

use super::PLUGIN_GUIDANCE;
use super::follower::Follower;
use super::plugin_facades::facades_by_interface;
use toolwit_agent::injection::Injection;
use toolwit_agent::injection::InjectionContext;
use toolwit_agent::injection::InjectionStrategy;
use toolwit_agent::injection::TurnContext;
use toolwit_core::{Tool, ToolDefinition, ToolId};
use toolwit_registry::{LiveRegistry, Registry};
use toolwit_sandbox::Scope;

/// Shows all tools of a registry from the start, and updates them at the beginning of each turn.
///
/// Tools do not change within a turn. An entity stays bound to the instance that created it.
pub struct RegistryTools {
    follower: Follower,
    /// Whether every interface with several functions is a facade, not only those of packages whose manifest requests
    /// it.
    is_facade_by_default: bool,
}

impl RegistryTools {
    /// Creates a strategy for all tools of a registry. Resources that the tools return live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self::among(registry, scope, |_| true)
    }

    /// Creates a strategy for the tools whose ids `may_use` accepts. It never adds any other tool.
    #[must_use]
    pub fn among(
        registry: impl Into<LiveRegistry>,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            follower: Follower::new(registry.into(), scope, may_use),
            is_facade_by_default: false,
        }
    }

    /// Shows every interface with several functions as a facade.
    #[must_use]
    pub fn as_facades(mut self) -> Self {
        self.is_facade_by_default = true;
        self
    }

    /// Returns the tools of the current turn.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let registry = self.follower.registry();
        registry.parse_inspections();
        let tools = registry
            .plugins()
            .flat_map(|plugin| self.follower.tools_of(&registry, plugin));
        self.group_into_facades(&registry, tools.collect())
    }

    /// Groups tools into facades where the manifest or the strategy requests it.
    fn group_into_facades(&self, registry: &Registry, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let manifests = || {
            registry
                .packages()
                .iter()
                .filter_map(|package| package.manifest.as_ref())
        };
        if !self.is_facade_by_default && !manifests().any(|manifest| manifest.facade) {
            return tools;
        }
        facades_by_interface(tools, |plugin| {
            let manifest = registry.package(plugin).and_then(|package| package.manifest.as_ref());
            let is_facade = self.is_facade_by_default || manifest.is_some_and(|manifest| manifest.facade);
            is_facade.then(|| {
                manifest
                    .and_then(|manifest| manifest.description.clone())
                    .unwrap_or_default()
            })
        })
    }

    /// Moves to the current packages, and returns the changes of the tools.
    fn changes(&self, turn: &TurnContext<'_>) -> Injection {
        let Some((before, now)) = self.follower.advance() else {
            return Injection::none();
        };
        let mut injection = self.follower.replacements(&before, &now, turn.tools());
        for plugin in now.plugins() {
            let earlier_plugin = before.package(plugin.name()).and_then(|package| package.plugin());
            if earlier_plugin.is_some_and(|earlier| Arc::ptr_eq(earlier, plugin)) {
                continue;
            }
            let new_tools = self
                .group_into_facades(&now, self.follower.tools_of(&now, plugin))
                .into_iter();
            // A facade is always replaced, so that it reveals the tools of the new version.
            let is_new =
                |tool: &Arc<dyn Tool>| tool.facade().is_some() || turn.tools().by_id(&tool.definition().id).is_none();
            injection.add.extend(new_tools.filter(is_new));
        }
        // Whether the plugin no longer has the interface of a facade.
        let is_gone = |id: &ToolId| {
            let plugin = now.plugins().find(|plugin| plugin.name() == id.owner());
            plugin.is_none_or(|plugin| {
                let is_in_interface = |tool: &ToolDefinition| tool.id.interface_of() == Some(id.as_str());
                !plugin.inspection().tools.iter().any(is_in_interface)
            })
        };
        // An id without `#` is that of an interface, which is shown as a facade.
        let ids = turn.tools().iter().map(|named| &named.definition.id);
        let plugin_ids = ids.filter(|id| before.plugins().any(|plugin| plugin.name() == id.owner()));
        injection.remove.extend(
            plugin_ids
                .filter(|id| !id.as_str().contains('#') && is_gone(id))
                .cloned(),
        );
        injection
    }
}

#[async_trait]
impl InjectionStrategy for RegistryTools {
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools()
    }

    fn guidance(&self) -> Option<&str> {
        let has_tools = self.follower.registry().tool_count() > 0;
        has_tools.then_some(PLUGIN_GUIDANCE)
    }

    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.follower.tool(tool.as_str())
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let injection = self.changes(turn);
        self.follower.retain_components(turn.tools(), &injection).await;
        injection
    }
}
