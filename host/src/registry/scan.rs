//! Looking through plugin directories. Nothing is compiled and no guest code runs.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use super::catalog::{Catalog, Hit, Query, SemanticIndex};
use super::document::{documents, standing};
use super::health::now_ms;
use super::listing::{Listed, list};
use super::package::{Package, PackageStatus, identity_of};
use super::reading::{Reading, read};
use super::watched::WatchedTool;
use crate::error::{Error, ErrorKind, Phase};
use crate::plugin::{Plugin, Runtime, Scope};
use crate::store::{MemoryStore, PackageRecord, Store, StoreError, ToolHealth};
use crate::tool::{Tool, ToolDefinition};

/// How many packages one task reads.
const CHUNK: usize = 32;

/// The packages of one or more plugin directories, and the tools that can be found among them.
#[derive(Clone)]
pub struct Registry {
    packages: Vec<Package>,
    catalog: Arc<Catalog>,
    store: Arc<dyn Store>,
}

impl Registry {
    /// Reads every package of the given directories, and single component files, several at a time.
    ///
    /// A package that is broken is listed with its reason, and so are both of two that claim one name. Hidden files and
    /// files that are no `.wasm` are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a directory cannot be read.
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
        let (of_task, store_of_task) = (places.to_vec(), store.clone());
        let (listed, known) = blocking(move || Ok((list(&of_task)?, remembered(&*store_of_task)))).await?;
        let (mut known, health) = known;
        let here: Vec<_> = listed
            .iter()
            .map(|file| file.path.to_string_lossy().into_owned())
            .collect();
        let chunks = chunks(listed, &mut known);
        let gone = gone(&known, places, &here);
        let parallel = std::thread::available_parallelism().map_or(2, usize::from);
        let readings: Vec<Vec<Reading>> = futures::stream::iter(chunks)
            .map(|chunk| {
                let runtime = runtime.clone();
                blocking(move || {
                    Ok(chunk
                        .into_iter()
                        .map(|(file, known)| read(&runtime, file, known))
                        .collect())
                })
            })
            .buffered(parallel)
            .try_collect()
            .await?;
        blocking(move || {
            Ok(assemble(
                readings.into_iter().flatten().collect(),
                &gone,
                &health,
                store,
            ))
        })
        .await
    }

    /// Returns the packages, by name.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Returns the plugins that can be used, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.packages.iter().filter_map(Package::plugin)
    }

    /// Finds tools of packages that can be used, among those whose id `may_use` allows.
    #[must_use]
    pub fn search(&self, query: &Query, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        self.catalog.search(query, may_use)
    }

    /// Finds tools by words and by meaning.
    #[must_use]
    pub fn search_with(&self, query: &Query, semantic: &dyn SemanticIndex, may_use: impl Fn(&str) -> bool) -> Vec<Hit> {
        self.catalog.search_with(query, semantic, may_use)
    }

    /// Returns the plugin that a tool belongs to.
    #[must_use]
    pub fn plugin_of(&self, tool: &str) -> Option<&Arc<Plugin>> {
        let name = tool.split(['/', '#']).next()?;
        let at = self
            .packages
            .binary_search_by(|package| package.name.as_str().cmp(name))
            .ok()?;
        self.packages[at].plugin()
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
        let tools = self.plugin_of(tool)?.tools(scope);
        let found = tools.into_iter().find(|other| other.definition().id.as_str() == tool)?;
        Some(self.watched(found))
    }

    /// Returns all tools of all plugins, bound to a conversation. How their calls end is remembered.
    #[must_use]
    pub fn tools(&self, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let tools = self.plugins().flat_map(|plugin| plugin.tools(scope));
        tools.map(|tool| self.watched(tool)).collect()
    }

    fn watched(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        Arc::new(WatchedTool::new(tool, self.store.clone()))
    }

    /// Returns what remembers its packages.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// What the store knows, by path; nothing when it cannot be read.
fn remembered(store: &dyn Store) -> (HashMap<String, PackageRecord>, BTreeMap<String, ToolHealth>) {
    let known = warned(store.packages())
        .into_iter()
        .map(|record| (record.path.clone(), record))
        .collect();
    (known, warned(store.health()))
}

fn warned<T: Default>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the store cannot be used; everything is read anew"
        );
        T::default()
    })
}

type Chunk = Vec<(Listed, Option<PackageRecord>)>;

/// Pairs files with what is known of them, a task's worth at a time.
fn chunks(listed: Vec<Listed>, known: &mut HashMap<String, PackageRecord>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for file in listed {
        let record = known.remove(&*file.path.to_string_lossy());
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push((file, record)),
            _ => chunks.push(vec![(file, record)]),
        }
    }
    chunks
}

/// Chooses the remembered packages of these places that are no longer there. A store may know other places too.
fn gone(known: &HashMap<String, PackageRecord>, places: &[PathBuf], here: &[String]) -> Vec<String> {
    let is_below = |path: &str| places.iter().any(|place| std::path::Path::new(path).starts_with(place));
    known
        .keys()
        .filter(|path| is_below(path) && !here.contains(path))
        .cloned()
        .collect()
}

fn assemble(
    readings: Vec<Reading>,
    gone: &[String],
    health: &BTreeMap<String, ToolHealth>,
    store: Arc<dyn Store>,
) -> Registry {
    let mut changed = Vec::new();
    let mut packages = Vec::with_capacity(readings.len());
    for reading in readings {
        changed.extend(reading.changed);
        packages.push(reading.package);
    }
    refuse_shared_names(&mut packages);
    if !changed.is_empty() || !gone.is_empty() {
        warned(store.update_packages(&changed, gone));
    }
    let mut catalog = Catalog::new();
    let now = now_ms();
    for package in &packages {
        let Some(plugin) = package.plugin() else { continue };
        let documents = documents(plugin, package.manifest.as_ref());
        catalog.put(
            &package.path.to_string_lossy(),
            documents.map(|mut document| {
                document.standing = standing(&document, health.get(&document.id), now);
                document
            }),
        );
    }
    Registry {
        packages,
        catalog: Arc::new(catalog),
        store,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = "reading the plugins failed unexpectedly";
        Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
    })
}

/// Refuses all packages that claim one name: nothing says which of them the operator means.
fn refuse_shared_names(packages: &mut [Package]) {
    packages.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    let mut claims: HashMap<String, Vec<PathBuf>> = HashMap::new();
    for package in packages.iter() {
        claims
            .entry(identity_of(&package.name))
            .or_default()
            .push(package.path.clone());
    }
    for package in packages.iter_mut() {
        let others: Vec<_> = claims
            .get(&identity_of(&package.name))
            .into_iter()
            .flatten()
            .filter(|path| **path != package.path)
            .map(|path| path.display().to_string())
            .collect();
        if !others.is_empty() {
            let message = format!("its name is also claimed by {}", others.join(", "));
            let error = Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("remove or rename one of them")
                .with_plugin(&*package.name);
            package.status = PackageStatus::Broken(error);
        }
    }
}
