//! The snapshot of a registry that a conversation uses during a turn, restricted to the tools that the conversation may
//! use.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;

use toolwit_agent::injection::Injection;
use toolwit_core::{Tool, ToolId, ToolSet};
use toolwit_registry::{LiveRegistry, Package, Registry};
use toolwit_sandbox::{Plugin, Scope};

/// Maximum number of threads that read components at the beginning of a turn.
const READERS_MAX: usize = 4;

/// The snapshot of a live registry that a conversation uses during a turn. A new turn moves to the current snapshot.
pub(super) struct Follower {
    live: LiveRegistry,
    snapshot: Mutex<Registry>,
    /// The scope of the resources that the tools return.
    scope: Scope,
    may_use: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Follower {
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
    pub(super) fn registry(&self) -> Registry {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the conversation may use a tool.
    pub(super) fn may_use(&self, id: &str) -> bool {
        (self.may_use)(id)
    }

    /// Returns the tool with an id, or `None` if it does not exist or the conversation may not use it.
    pub(super) fn tool(&self, id: &str) -> Option<Arc<dyn Tool>> {
        let registry = self.registry();
        registry.tool(id, &self.scope).filter(|_| self.may_use(id))
    }

    /// Returns those tools of a plugin that the conversation may use.
    pub(super) fn tools_of(&self, registry: &Registry, plugin: &Arc<Plugin>) -> Vec<Arc<dyn Tool>> {
        let mut tools = registry.tools_of(plugin, &self.scope);
        tools.retain(|tool| self.may_use(tool.definition().id.as_str()));
        tools
    }

    /// Keeps in memory the components of the tools that are not compiled yet, so that these tools work for the turn
    /// even if the files change. A few threads share the work: usually the compiled code is cached and nothing has to
    /// be read, so a thread for each plugin would cost more than the work.
    pub(super) async fn retain_components(&self, tools: &ToolSet, injection: &Injection) {
        let present = tools.iter().map(|named| &named.definition.id);
        let added = injection.add.iter().map(|tool| &tool.definition().id);
        let owners: BTreeSet<_> = present.chain(added).map(ToolId::owner).collect();
        let registry = self.registry();
        let packages = owners.into_iter().filter_map(|owner| registry.package(owner));
        let plugins = packages
            .filter_map(Package::plugin)
            .filter(|plugin| !plugin.is_compiled());
        let plugins: Vec<_> = plugins.cloned().collect();
        let reads = plugins.chunks(plugins.len().div_ceil(READERS_MAX).max(1)).map(|chunk| {
            let chunk = chunk.to_vec();
            tokio::task::spawn_blocking(move || chunk.iter().for_each(|plugin| plugin.retain_component()))
        });
        // A read that panicked retains nothing.
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

    /// Returns the injection that replaces changed tools by their new versions and removes those that no longer exist.
    pub(super) fn replacements(&self, before: &Registry, now: &Registry, tools: &ToolSet) -> Injection {
        let mut injection = Injection::none();
        let changed = before.plugins().filter(|earlier| {
            let current = now.package(earlier.name()).and_then(Package::plugin);
            !current.is_some_and(|current| Arc::ptr_eq(current, earlier))
        });
        for earlier in changed {
            let current = now.package(earlier.name()).and_then(Package::plugin);
            let new_tools = current
                .map(|plugin| now.tools_of(plugin, &self.scope))
                .unwrap_or_default();
            let mut new_tools: HashMap<_, _> = new_tools
                .into_iter()
                .map(|tool| (tool.definition().id.clone(), tool))
                .collect();
            // Methods of entities are not in the registry: they live as long as their instance.
            for definition in &earlier.inspection().tools {
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
