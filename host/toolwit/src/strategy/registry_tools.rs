//! A strategy that shows all tools of a registry.

use std::sync::Arc;

use async_trait::async_trait;

use super::PLUGIN_GUIDANCE;
use super::plugin_facades::facades_by_interface;
use super::registry_view::RegistryView;
use toolwit_agent::injection::{Injection, InjectionContext, InjectionStrategy, TurnContext};
use toolwit_core::{Tool, ToolDefinition, ToolId};
use toolwit_registry::{LiveRegistry, Registry};
use toolwit_sandbox::Scope;

/// Shows all tools of a registry from the start, and updates them at the beginning of each turn.
///
/// Tools of plugins do not change within a turn. When a plugin is replaced, its entities are gone: a call of their methods
/// names the tools that return new ones. The entities of a removed plugin keep working.
pub struct RegistryTools {
    registry_view: RegistryView,
    /// Whether all interfaces with several functions are facades. Otherwise, only those of packages whose manifest
    /// requests facades.
    is_facade_by_default: bool,
}

impl RegistryTools {
    /// Creates a strategy for all tools of a registry. Resources that the tools return live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self::among(registry, scope, |_| true)
    }

    /// Creates a strategy for those tools of a registry whose ids `may_use` accepts. It never adds any other tool.
    #[must_use]
    pub fn among(
        registry: impl Into<LiveRegistry>,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            registry_view: RegistryView::new(registry.into(), scope, may_use),
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
        let registry = self.registry_view.snapshot();
        registry.parse_inspections();
        let tools = registry
            .plugins()
            .flat_map(|plugin| self.registry_view.tools_of(&registry, plugin));
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

    /// Moves to the current snapshot of the registry, and returns the changes of the tools.
    fn changes(&self, turn: &TurnContext<'_>) -> Injection {
        let Some((previous, current)) = self.registry_view.advance() else {
            return Injection::none();
        };
        let mut injection = self.registry_view.replacements(&previous, &current, turn.tools());
        for plugin in current.plugins() {
            let old_plugin = previous.package(plugin.name()).and_then(|package| package.plugin());
            if old_plugin.is_some_and(|old_plugin| Arc::ptr_eq(old_plugin, plugin)) {
                continue;
            }
            let plugin_tools = self
                .group_into_facades(&current, self.registry_view.tools_of(&current, plugin))
                .into_iter();
            // `replacements` has replaced the tools that the conversation has, but not the facades. A facade is always
            // added again, so that it reveals the tools of the new version.
            let is_to_add =
                |tool: &Arc<dyn Tool>| tool.facade().is_some() || turn.tools().by_id(&tool.definition().id).is_none();
            injection.add.extend(plugin_tools.filter(is_to_add));
        }
        // Returns whether no plugin has the interface with this id any more.
        let is_interface_gone = |id: &ToolId| {
            let plugin = current.plugins().find(|plugin| plugin.name() == id.owner());
            plugin.is_none_or(|plugin| {
                let is_in_interface = |tool: &ToolDefinition| tool.id.interface_of() == Some(id.as_str());
                !plugin.inspection().tools.iter().any(is_in_interface)
            })
        };
        // The facade of an interface has the id of the interface, which has no `#`.
        let ids = turn.tools().iter().map(|named| &named.definition.id);
        let plugin_ids = ids.filter(|id| previous.plugins().any(|plugin| plugin.name() == id.owner()));
        injection.remove.extend(
            plugin_ids
                .filter(|id| !id.as_str().contains('#') && is_interface_gone(id))
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
        let has_tools = self.registry_view.snapshot().tool_count() > 0;
        has_tools.then_some(PLUGIN_GUIDANCE)
    }

    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.registry_view.tool(tool.as_str())
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let injection = self.changes(turn);
        self.registry_view.retain_components(turn.tools(), &injection).await;
        injection
    }
}
