//! An immutable snapshot of the packages of plugin directories.

mod health_recorder;
mod lazy_catalog;
mod parse;

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use self::health_recorder::HealthRecorder;
pub(crate) use self::lazy_catalog::LazyCatalog;
use crate::catalog::{Catalog, HealthSignal, Hit, Query};
use crate::health::FailingTool;
use crate::package::{Package, stored_path};
use crate::store::{Store, StoreError, StoredTool, ToolKey, ToolQuery};
use toolwit_core::{Tool, ToolDefinition};
use toolwit_sandbox::{Plugin, Scope};

/// An immutable snapshot of the packages of one or more plugin directories, with a search index of their tools.
///
/// Clones share the snapshot. A [`LiveRegistry`](crate::LiveRegistry) provides a new snapshot after the directories
/// change.
#[derive(Clone)]
pub struct Registry {
    pub(crate) snapshot: Arc<Snapshot>,
}

/// The content of a [`Registry`].
pub(crate) struct Snapshot {
    /// Sorted by name. Packages that share a name are all broken.
    pub(crate) packages: Vec<Package>,
    pub(crate) catalog: LazyCatalog,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) current_snapshot: Arc<CurrentSnapshot>,
}

/// A weak reference to the newest snapshot of the directories. All snapshots of the same directories share this object,
/// and their tools report their calls to it.
#[derive(Default)]
pub(crate) struct CurrentSnapshot(RwLock<Weak<Snapshot>>);

impl CurrentSnapshot {
    pub(crate) fn set(&self, snapshot: &Arc<Snapshot>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(snapshot);
    }

    /// Records a call in the search index of the newest snapshot: sets the health of the tool unless `health` is `None`,
    /// and counts a use if `is_use`. Does nothing if this snapshot does not have the plugin with this digest.
    pub(crate) fn record_call(&self, tool: &ToolKey, health: Option<HealthSignal>, is_use: bool) {
        let newest = self.0.read().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(registry) = newest.map(|snapshot| Registry { snapshot }) else {
            return;
        };
        let plugin = registry.plugin_of(&tool.tool);
        if plugin.is_some_and(|plugin| plugin.digest() == tool.digest) {
            let catalog = registry.catalog();
            health.map(|health| catalog.set_health(&tool.tool, health));
            if is_use {
                catalog.add_use(&tool.tool);
            }
        }
    }
}

impl Registry {
    /// Returns all packages, sorted by name, broken ones included.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.snapshot.packages
    }

    /// Returns the plugins of the packages that are not broken, sorted by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.packages().iter().filter_map(Package::plugin)
    }

    /// Returns the package of this name, if there is one. If several packages share the name, returns one of them,
    /// which is broken.
    #[must_use]
    pub fn package(&self, name: &str) -> Option<&Package> {
        let packages = self.packages();
        let index = packages
            .binary_search_by(|package| package.name.as_str().cmp(name))
            .ok()?;
        packages.get(index)
    }

    /// Returns the search index of the tools. A [`CatalogUnion`](crate::CatalogUnion) searches it together with others.
    /// The first call for a snapshot waits until the index is built.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        self.snapshot.catalog.get()
    }

    /// Searches the tools whose id `may_use` accepts.
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        self.catalog().search(query, may_use)
    }

    /// Returns the plugin whose name is in the tool id `id`, or `None` if no usable package has this name. Does not check
    /// whether the plugin has the tool.
    #[must_use]
    pub fn plugin_of(&self, id: &str) -> Option<&Arc<Plugin>> {
        self.package(id.split(['/', '#']).next()?)?.plugin()
    }

    /// Returns the definition of the tool with this id, or `None` if no usable plugin has the tool.
    #[must_use]
    pub fn definition(&self, id: &str) -> Option<&ToolDefinition> {
        let tools = &self.plugin_of(id)?.inspection().tools;
        tools.iter().find(|definition| definition.id.as_str() == id)
    }

    /// Returns the definition of an entity method, by the id that all instances share. `None` if no usable plugin has
    /// the method.
    #[must_use]
    pub fn method(&self, id: &str) -> Option<&ToolDefinition> {
        let entities = self.plugin_of(id)?.inspection().entities.iter();
        let mut methods = entities.flat_map(|entity| &entity.methods);
        methods.find(|method| method.id.as_str() == id)
    }

    /// Returns the tool with this id, or `None` if no usable plugin has the tool. `scope` is the conversation whose
    /// session instances the tool uses. The outcome of its calls is recorded in the store.
    #[must_use]
    pub fn tool(&self, id: &str, scope: &Scope) -> Option<Arc<dyn Tool>> {
        let plugin = self.plugin_of(id)?;
        let tools = plugin.tools(scope);
        let tool = tools.into_iter().find(|tool| tool.definition().id.as_str() == id)?;
        Some(self.with_recording(plugin, tool))
    }

    /// Returns the tools of all plugins; see [`Registry::tool`].
    #[must_use]
    pub fn tools(&self, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        self.parse_inspections();
        self.plugins().flat_map(|plugin| self.tools_of(plugin, scope)).collect()
    }

    /// Returns the tools of one plugin; see [`Registry::tool`].
    #[must_use]
    pub fn tools_of(&self, plugin: &Arc<Plugin>, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let tools = plugin.tools(scope).into_iter();
        tools.map(|tool| self.with_recording(plugin, tool)).collect()
    }

    /// Returns the number of tools of all plugins.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.plugins().map(|plugin| plugin.tool_count()).sum()
    }

    /// Wraps a tool in a decorator that records its calls.
    fn with_recording(&self, plugin: &Plugin, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let digest = plugin.digest();
        Arc::new(HealthRecorder::new(
            tool,
            digest,
            self.snapshot.store.clone(),
            self.snapshot.current_snapshot.clone(),
        ))
    }

    /// Returns the store of package metadata.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.snapshot.store
    }

    /// Returns the tools of usable plugins whose last check failed: the component did not load, or the call failed. The
    /// age of the check does not matter. Blocks.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn failing_tools(&self) -> Result<Vec<FailingTool>, StoreError> {
        let health = self.store().health()?;
        let tools = self.plugins().flat_map(|plugin| {
            let inspection = plugin.inspection();
            let failing = inspection.tools.iter().filter_map(|tool| {
                let health = health.get(&ToolKey::new(inspection.digest.as_str(), tool.id.as_str()))?;
                health.is_broken().then(|| FailingTool {
                    tool: tool.id.clone(),
                    error: health.error.clone(),
                })
            });
            failing.collect::<Vec<_>>()
        });
        Ok(tools.collect())
    }

    /// Returns the tools of usable plugins that a query selects, in its order, with their health and uses. Blocks.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn ranked_tools(&self, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError> {
        let mut tools = self.store().tools(query)?;
        // The store is shared: it also has the packages of other directories.
        let usable = self.packages().iter().filter(|package| package.plugin().is_some());
        let paths: HashSet<_> = usable.map(|package| stored_path(&package.path)).collect();
        tools.retain(|tool| paths.contains(&tool.path));
        Ok(tools)
    }

    /// Returns whether both registries share one snapshot, so that they have the same packages.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot)
    }
}
