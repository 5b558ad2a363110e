//! The packages of plugin directories as they were at one moment.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::catalog::{Catalog, HealthBoost, Hit, Query, SemanticIndex};
use super::health_tool::HealthTool;
use super::listing::MissingPath;
use super::package::Package;
use super::scan::Scan;
use crate::store::{MemoryStore, Store, ToolKey};
use toolwit_core::Error;
use toolwit_core::{Tool, ToolDefinition};
use toolwit_sandbox::{Plugin, Runtime, Scope};

/// The packages of one or more plugin directories as they were when they were read, and the tools that can be found among
/// them. Clones share everything; [`LiveRegistry`](super::LiveRegistry) keeps up with the directories.
#[derive(Clone)]
pub struct Registry {
    pub(super) view: Arc<View>,
}

/// What a registry knows.
pub(super) struct View {
    /// By name. Those that claim one name are all broken here.
    pub(super) packages: Vec<Package>,
    pub(super) catalog: Catalog,
    pub(super) store: Arc<dyn Store>,
    pub(super) newest: Arc<Newest>,
}

/// The newest view of some directories: what calls tell about tools goes there, whichever view they were found in.
#[derive(Default)]
pub(super) struct Newest(RwLock<Weak<View>>);

impl Newest {
    pub(super) fn is_now(&self, view: &Arc<View>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(view);
    }

    /// Lets searches from now on know whether a tool works, unless another version has taken its place.
    pub(super) fn note(&self, tool: &ToolKey, health: HealthBoost) {
        let newest = self.0.read().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(registry) = newest.map(|view| Registry { view }) else {
            return;
        };
        let plugin = registry.plugin_of(&tool.tool);
        if plugin.is_some_and(|plugin| plugin.digest() == tool.digest) {
            registry.view.catalog.set_health(&tool.tool, health);
        }
    }
}

impl Registry {
    /// Reads every package of the given directories, and single component files, several at a time.
    ///
    /// A package that is broken is listed with its reason, and so are both of two that claim one name. Hidden files and
    /// files that are no `.wasm` are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) when a directory cannot be read.
    pub async fn scan(runtime: &Arc<Runtime>, places: &[PathBuf]) -> Result<Self, Error> {
        Self::scan_into(runtime, places, Arc::new(MemoryStore::new())).await
    }

    /// Reads every package as [`Registry::scan`] does, but takes from a store what did not change since it was read, and
    /// leaves there what it read.
    ///
    /// A store that fails costs time and a warning, nothing else.
    ///
    /// # Errors
    /// Those of [`Registry::scan`].
    pub async fn scan_into(runtime: &Arc<Runtime>, places: &[PathBuf], store: Arc<dyn Store>) -> Result<Self, Error> {
        let scan = Scan::new(runtime.clone(), places.to_vec(), MissingPath::Error, store);
        let (registry, _) = scan.first().await?;
        Ok(registry)
    }

    /// Returns the packages, by name.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.view.packages
    }

    /// Returns the plugins that can be used, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.packages().iter().filter_map(Package::plugin)
    }

    /// Returns the package of this name.
    #[must_use]
    pub fn package(&self, name: &str) -> Option<&Package> {
        let packages = self.packages();
        let at = packages
            .binary_search_by(|package| package.name.as_str().cmp(name))
            .ok()?;
        packages.get(at)
    }

    /// Finds tools of packages that can be used, among those whose id `may_use` allows.
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        self.view.catalog.search(query, may_use)
    }

    /// Finds tools by words and by meaning.
    #[must_use]
    pub fn search_with(&self, query: &Query, semantic: &dyn SemanticIndex, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        self.view.catalog.search_with(query, semantic, may_use)
    }

    /// Returns the plugin that a tool belongs to.
    #[must_use]
    pub fn plugin_of(&self, tool: &str) -> Option<&Arc<Plugin>> {
        self.package(tool.split(['/', '#']).next()?)?.plugin()
    }

    /// Returns what is told about a tool.
    #[must_use]
    pub fn definition(&self, tool: &str) -> Option<&ToolDefinition> {
        let tools = &self.plugin_of(tool)?.inspection().tools;
        tools.iter().find(|definition| definition.id.as_str() == tool)
    }

    /// Returns a tool, bound to a conversation. How its calls end is remembered.
    #[must_use]
    pub fn tool(&self, tool: &str, scope: &Scope) -> Option<Arc<dyn Tool>> {
        let plugin = self.plugin_of(tool)?;
        let tools = plugin.tools(scope);
        let found = tools.into_iter().find(|other| other.definition().id.as_str() == tool)?;
        Some(self.with_health(plugin, found))
    }

    /// Returns all tools of all plugins, bound to a conversation. How their calls end is remembered.
    #[must_use]
    pub fn tools(&self, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let of_plugin = |plugin| self.tools_of(plugin, scope);
        self.plugins().flat_map(of_plugin).collect()
    }

    /// Returns the tools of one plugin, bound to a conversation. How their calls end is remembered.
    #[must_use]
    pub fn tools_of(&self, plugin: &Arc<Plugin>, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let tools = plugin.tools(scope).into_iter();
        tools.map(|tool| self.with_health(plugin, tool)).collect()
    }

    /// Returns how many tools all plugins have together.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.plugins().map(|plugin| plugin.tool_count()).sum()
    }

    fn with_health(&self, plugin: &Plugin, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let digest = plugin.digest();
        Arc::new(HealthTool::new(
            tool,
            digest,
            self.view.store.clone(),
            self.view.newest.clone(),
        ))
    }

    /// Returns what remembers its packages.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.view.store
    }

    /// Tells whether both know the same, because nothing changed between them.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.view, &other.view)
    }
}
