//! A conversation's view of a registry: one snapshot for each turn, with the tools that the conversation may use.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;

use toolwit_agent::injection::Injection;
use toolwit_core::{Tool, ToolId, ToolSet};
use toolwit_registry::{LiveRegistry, Package, Registry};
use toolwit_sandbox::{Plugin, Scope};

/// Maximum number of threads that read components at the beginning of a turn.
const READERS_MAX: usize = 4;

/// A conversation's view of a live registry. It holds the same snapshot for a full turn, and allows only the tools that
/// the conversation may use. [`RegistryView::advance`] moves to the current snapshot when a turn begins.
pub(super) struct RegistryView {
    live: LiveRegistry,
    snapshot: Mutex<Registry>,
    /// The state of the plugins in this conversation: the instances that hold the resources of the conversation. The scope also
    /// restricts the methods of these resources to the tools that the conversation may use.
    scope: Scope,
    may_use: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl RegistryView {
    pub(super) fn new(
        live: LiveRegistry,
        scope: Scope,
        may_use: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let may_use = Arc::new(may_use);
        let may_use_method = may_use.clone();
        Self {
            snapshot: Mutex::new(live.current()),
            live,
            scope: scope.restricted_to(move |id| may_use_method(id)),
            may_use,
        }
    }

    /// Returns the snapshot of the current turn.
    pub(super) fn snapshot(&self) -> Registry {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the conversation may use a tool.
    pub(super) fn may_use(&self, id: &str) -> bool {
        (self.may_use)(id)
    }

    /// Returns the tool with an id, or `None` if it does not exist or the conversation may not use it.
    pub(super) fn tool(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let registry = self.snapshot();
        registry.tool(id, &self.scope).filter(|_| self.may_use(id))
    }

    /// Returns those tools of a plugin in `registry` that the conversation may use.
    pub(super) fn tools_of(&self, registry: &Registry, plugin: &Arc<Plugin>) -> Vec<Arc<dyn Tool>> {
        let mut tools = registry.tools_of(plugin, &self.scope);
        tools.retain(|tool| self.may_use(tool.definition().id.as_str()));
        tools
    }

    /// Keeps in memory the components of plugins that are not compiled yet, so that their tools work during the turn even
    /// if the files change. Covers the plugins of `tools` and of the tools that `injection` adds.
    ///
    /// At most [`READERS_MAX`] threads read the components. More threads would not help: the code of most plugins is in the
    /// code cache, so their components need not be read.
    pub(super) async fn retain_components(&self, tools: &ToolSet, injection: &Injection) {
        let present_ids = tools.iter().map(|named| &named.definition.id);
        let added_ids = injection.add.iter().map(|tool| &tool.definition().id);
        let owners: BTreeSet<_> = present_ids.chain(added_ids).map(ToolId::owner).collect();
        let registry = self.snapshot();
        let packages = owners.into_iter().filter_map(|owner| registry.package(owner));
        let uncompiled = packages
            .filter_map(Package::plugin)
            .filter(|plugin| !plugin.is_compiled());
        let uncompiled: Vec<_> = uncompiled.cloned().collect();
        let plugins_per_thread = uncompiled.len().div_ceil(READERS_MAX).max(1);
        let reads = uncompiled.chunks(plugins_per_thread).map(|plugins| {
            let plugins = plugins.to_vec();
            tokio::task::spawn_blocking(move || plugins.iter().for_each(|plugin| plugin.retain_component()))
        });
        // A task that panicked is ignored: its remaining plugins are read at their first call instead.
        drop(join_all(reads).await);
    }

    /// Moves to the current snapshot. Returns the previous snapshot and the current one, or `None` if they are the
    /// same.
    pub(super) fn advance(&self) -> Option<(Registry, Registry)> {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.live.current();
        if snapshot.is_same(&current) {
            return None;
        }
        let previous = std::mem::replace(&mut *snapshot, current.clone());
        Some((previous, current))
    }

    /// Returns the injection that replaces the tools in `tools` whose plugin changed between two snapshots, and removes
    /// those that no longer exist. It adds no new tools. The entities of a replaced plugin are gone: their methods fail with
    /// the error that names the tools which return new ones.
    pub(super) fn replacements(&self, previous: &Registry, current: &Registry, tools: &ToolSet) -> Injection {
        let mut injection = Injection::none();
        current.plugins().for_each(|plugin| self.scope.use_version(plugin));
        let changed = previous.plugins().filter(|old_plugin| {
            let new_plugin = current.package(old_plugin.name()).and_then(Package::plugin);
            !new_plugin.is_some_and(|new_plugin| Arc::ptr_eq(new_plugin, old_plugin))
        });
        for old_plugin in changed {
            let new_plugin = current.package(old_plugin.name()).and_then(Package::plugin);
            let new_tools = new_plugin
                .map(|plugin| current.tools_of(plugin, &self.scope))
                .unwrap_or_default();
            let mut new_tools: HashMap<_, _> = new_tools
                .into_iter()
                .map(|tool| (tool.definition().id.clone(), tool))
                .collect();
            // Methods of entities are neither replaced nor removed: the next result with the entity binds them to its object.
            for definition in &old_plugin.inspection().tools {
                match (tools.by_id(&definition.id), new_tools.remove(&definition.id)) {
                    (Some(_), Some(tool)) => injection.add.push(tool),
                    (Some(_), None) => injection.remove.push(definition.id.clone()),
                    (None, _) => {}
                }
            }
        }
        injection
    }
}
