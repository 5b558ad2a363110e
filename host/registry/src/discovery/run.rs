//! Running plugins to discover their dynamic tools.

use std::collections::HashSet;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::apply::apply;
use super::{DiscoveryOutcome, DiscoveryTargets};
use crate::live::LiveRegistry;
use crate::package::Package;
use crate::registry::Registry;
use crate::scan::{ScannedFiles, blocking, next_registry, or_default_with_warning};
use crate::store::Store;
use toolwit_core::Error;
use toolwit_sandbox::Plugin;

/// The maximum number of plugins that run concurrently. It is high, because a plugin that only waits must not delay the others.
/// It does not limit compilation, which has its own workers.
const CONCURRENT_PLUGINS_MAX: usize = 64;

/// The maximum number of results that are published together. Each publication builds a new snapshot of all packages.
const RESULTS_PER_PUBLICATION_MAX: usize = 256;

/// The time after which a plugin whose discovery failed is pending again. It is long, because each attempt with a hostile plugin
/// costs seconds of CPU time.
const RETRY_AFTER: Duration = Duration::from_secs(300);

/// The result of a discovery for one plugin.
pub(super) struct DiscoveryResult {
    pub(super) path: PathBuf,
    /// The plugin before the discovery.
    pub(super) plugin: Arc<Plugin>,
    /// The plugin with its discovered tools.
    pub(super) discovered: Result<Arc<Plugin>, Error>,
}

impl LiveRegistry {
    /// Runs plugins to discover their dynamic tools, and publishes the results as they arrive.
    ///
    /// Results are stored by plugin name and component digest: a pending plugin with a stored result does not run. If a
    /// discovery fails, the tools in the WIT and earlier discovered tools stay available, and [`Package::discovery_error`]
    /// returns the reason if dynamic tools are missing. A package becomes broken only if no function of its component can run.
    /// For a registry without directories, no plugin runs and the result is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](toolwit_core::ErrorKind::Internal) if a task of the host panics. Failures of plugins are
    /// in the outcomes.
    pub async fn discover_dynamic_tools(&self, targets: DiscoveryTargets<'_>) -> Result<Vec<DiscoveryOutcome>, Error> {
        if self.is_fixed() {
            return Ok(Vec::new());
        }
        let _one_at_a_time = self.inner.discovery_lock.lock().await;
        let plugins = select(&self.current(), &*self.inner.files.lock().await, targets);
        let store = self.current().store().clone();
        let results = futures::stream::iter(plugins)
            .map(|(path, plugin)| discover(&store, path, plugin, targets))
            .buffer_unordered(CONCURRENT_PLUGINS_MAX)
            .ready_chunks(RESULTS_PER_PUBLICATION_MAX);
        let mut results = pin!(results);
        let mut outcomes: Vec<DiscoveryOutcome> = Vec::new();
        while let Some(finished) = results.next().await {
            outcomes.extend(finished.iter().map(DiscoveryResult::outcome));
            self.publish(finished).await?;
        }
        outcomes.sort_by(|a, b| a.plugin.cmp(&b.plugin));
        Ok(outcomes)
    }

    /// Merges results into the scanned files. If this changes a file, writes the changes to the store and publishes a new
    /// snapshot.
    async fn publish(&self, results: Vec<DiscoveryResult>) -> Result<(), Error> {
        let mut files = self.inner.files.lock().await;
        let (earlier, mut next_files) = (self.current(), files.clone());
        let store = earlier.store().clone();
        let merge = blocking(move || {
            let model = earlier.catalog().embedding_model();
            let changes = apply(&mut next_files, results, model);
            if !changes.has_changed_files {
                return Ok(None);
            }
            or_default_with_warning(store.save_dynamic_tools(&changes.dynamic_tools));
            or_default_with_warning(store.update_packages(&changes.packages, &[]));
            Ok(Some((next_registry(&earlier, &next_files, store), next_files)))
        });
        if let Some((registry, next_files)) = merge.await? {
            *files = next_files;
            self.inner.current.send_replace(registry);
        }
        Ok(())
    }
}

impl DiscoveryResult {
    fn outcome(&self) -> DiscoveryOutcome {
        let tools = self.discovered.as_ref().map(|plugin| plugin.tool_count());
        DiscoveryOutcome {
            plugin: self.plugin.name().to_owned(),
            tools: tools.map_err(Error::clone),
        }
    }
}

/// Selects the plugins to run, with the paths of their components.
fn select(registry: &Registry, files: &ScannedFiles, targets: DiscoveryTargets<'_>) -> Vec<(PathBuf, Arc<Plugin>)> {
    let names: HashSet<&str> = match targets {
        DiscoveryTargets::Named(names) => names.iter().map(String::as_str).collect(),
        DiscoveryTargets::Pending | DiscoveryTargets::All => HashSet::new(),
    };
    let select_plugin = |package: &Package| {
        let file = files.get(&package.path);
        let failed = file.and_then(|file| file.failed_discovery.as_ref());
        // A package that a failed discovery broke is also broken in its scanned file, and its plugin can run again. A package with
        // a duplicate name is broken only in the registry, and its plugin must not run.
        let broken_by_discovery = || failed.filter(|_| file.is_some_and(|file| file.package.plugin().is_none()));
        let plugin = package
            .plugin()
            .or_else(|| broken_by_discovery().map(|failed| &failed.plugin))?;
        let is_selected = match targets {
            DiscoveryTargets::Pending => {
                plugin.dynamic_tools_state().is_undiscovered()
                    && failed.is_none_or(|failed| failed.at.elapsed() >= RETRY_AFTER)
            }
            DiscoveryTargets::Named(_) => names.contains(&*package.name) && !plugin.dynamic_tools_state().is_none(),
            DiscoveryTargets::All => !plugin.dynamic_tools_state().is_none(),
        };
        is_selected.then(|| (package.path.clone(), plugin.clone()))
    };
    registry.packages().iter().filter_map(select_plugin).collect()
}

/// Discovers the dynamic tools of a plugin. A pending plugin does not run if the store has its tools: another process may have
/// stored them.
async fn discover(
    store: &Arc<dyn Store>,
    path: PathBuf,
    plugin: Arc<Plugin>,
    targets: DiscoveryTargets<'_>,
) -> DiscoveryResult {
    let (name, digest) = (plugin.name().to_owned(), plugin.digest().to_owned());
    let store = store.clone();
    let read_stored = move || Ok(or_default_with_warning(store.dynamic_tools(&name, &digest)));
    let stored = match targets {
        DiscoveryTargets::Pending => blocking(read_stored).await.ok().flatten(),
        DiscoveryTargets::Named(_) | DiscoveryTargets::All => None,
    };
    let discovered = match stored.and_then(|tools| plugin.with_discovered_tools(&tools)) {
        Some(plugin) => Ok(plugin),
        None if targets == DiscoveryTargets::Pending => plugin.discover_tools().await,
        None => plugin.rediscover_tools().await,
    };
    if let Err(error) = &discovered {
        tracing::warn!(plugin = plugin.name(), %error, "the dynamic tools of a plugin could not be discovered");
    }
    DiscoveryResult {
        path,
        plugin,
        discovered,
    }
}
