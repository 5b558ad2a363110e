//! Building a snapshot from scanned files.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::tool_document::ranking_signals;
use super::{ScannedFiles, or_default_with_warning};
use crate::catalog::{Catalog, EmbeddingModel, IndexedTool};
use crate::health::now_ms;
use crate::package::{Package, PackageStatus, snake_case_form};
use crate::registry::{CurrentSnapshot, LazyCatalog, Registry, Snapshot};
use crate::store::{Store, ToolHealth, ToolKey};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Plugin;

/// The maximum number of other packages with the same name that an error lists. Each of these packages has such an error,
/// so complete lists would be very long in total.
const NAMESAKES_SHOWN_MAX: usize = 3;

/// The maximum number of tools in a search index that is built when it is first used. Building an index of this size takes
/// a few milliseconds. A larger index is built at once, because a call that waits for the index blocks a thread of the
/// async runtime.
const LAZY_TOOLS_MAX: usize = 500;

/// A package whose tools belong in the search index.
struct IndexedPackage {
    path: PathBuf,
    digest: String,
    tools: Arc<[IndexedTool]>,
}

impl IndexedPackage {
    /// Creates the indexed package of a scanned package. `None` if the package is broken.
    fn of(package: &Package, files: &ScannedFiles) -> Option<Self> {
        Some(Self {
            digest: package.plugin()?.digest().to_owned(),
            tools: files.get(&package.path)?.tools.clone(),
            path: package.path.clone(),
        })
    }

    /// Replaces the tools of the package in the search index, and sets their recorded health and uses.
    fn put_into(&self, catalog: &mut Catalog, health: &BTreeMap<ToolKey, ToolHealth>) {
        catalog.put_indexed(&self.path.to_string_lossy(), self.tools.iter());
        if health.is_empty() {
            return;
        }
        let now = now_ms();
        for tool in self.tools.iter() {
            if let Some(tool_health) = health.get(&ToolKey::new(self.digest.as_str(), tool.id.as_str())) {
                catalog.set_signals(&tool.id, ranking_signals(tool.signals, tool_health, now));
            }
        }
    }
}

/// Builds the first snapshot. A search index of at most [`LAZY_TOOLS_MAX`] tools is built when it is first used, a larger
/// index immediately. Blocks.
pub(super) fn first_registry(
    files: &ScannedFiles,
    store: Arc<dyn Store>,
    model: Option<Arc<dyn EmbeddingModel>>,
) -> Registry {
    let health = or_default_with_warning(store.health());
    let packages = packages_of(files);
    let indexed_packages: Vec<_> = packages
        .iter()
        .filter_map(|package| IndexedPackage::of(package, files))
        .collect();
    let tool_count: usize = indexed_packages.iter().map(|package| package.tools.len()).sum();
    let catalog = LazyCatalog::new(move || {
        let mut catalog = model.into_iter().fold(Catalog::new(), Catalog::with_embedding_model);
        for package in &indexed_packages {
            package.put_into(&mut catalog, &health);
        }
        catalog
    });
    if tool_count > LAZY_TOOLS_MAX {
        catalog.get();
    }
    make_current(packages, catalog, store, Arc::default())
}

/// Builds the snapshot that replaces `earlier`. Copies the search index of `earlier` and updates the plugins that changed.
/// Blocks.
pub(crate) fn next_registry(earlier: &Registry, files: &ScannedFiles, store: Arc<dyn Store>) -> Registry {
    let health = or_default_with_warning(store.health());
    let mut catalog = earlier.catalog().clone();
    let earlier_plugins = plugins_by_path(earlier.packages());
    let packages = packages_of(files);
    let is_changed = |package: &&Package| {
        let earlier_plugin = earlier_plugins.get(&package.path);
        !earlier_plugin.is_some_and(|before| package.plugin().is_some_and(|after| Arc::ptr_eq(before, after)))
    };
    let changed = packages.iter().filter(is_changed);
    for package in changed.filter_map(|package| IndexedPackage::of(package, files)) {
        package.put_into(&mut catalog, &health);
    }
    let plugins = plugins_by_path(&packages);
    for path in earlier_plugins.keys().filter(|path| !plugins.contains_key(*path)) {
        catalog.remove(&path.to_string_lossy());
    }
    make_current(
        packages,
        catalog.into(),
        store,
        earlier.snapshot.current_snapshot.clone(),
    )
}

/// Returns the packages, sorted by name. Packages that share a name are broken.
fn packages_of(files: &ScannedFiles) -> Vec<Package> {
    let mut packages: Vec<_> = files.values().map(|file| file.package.clone()).collect();
    reject_shared_names(&mut packages);
    packages
}

/// Creates a snapshot and makes it the current snapshot.
fn make_current(
    packages: Vec<Package>,
    catalog: LazyCatalog,
    store: Arc<dyn Store>,
    current_snapshot: Arc<CurrentSnapshot>,
) -> Registry {
    let snapshot = Arc::new(Snapshot {
        packages,
        catalog,
        store,
        current_snapshot,
    });
    snapshot.current_snapshot.set(&snapshot);
    Registry { snapshot }
}

fn plugins_by_path(packages: &[Package]) -> HashMap<PathBuf, Arc<Plugin>> {
    let usable = packages
        .iter()
        .filter_map(|package| Some((package.path.clone(), package.plugin()?.clone())));
    usable.collect()
}

/// Sorts packages by name. Marks packages as broken if their names have the same snake-case form, because a tool name
/// must refer to one package.
fn reject_shared_names(packages: &mut [Package]) {
    packages.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    let mut by_snake_case_form: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, package) in packages.iter().enumerate() {
        by_snake_case_form
            .entry(snake_case_form(&package.name))
            .or_default()
            .push(index);
    }
    for indices in by_snake_case_form.into_values().filter(|indices| indices.len() > 1) {
        let paths: Vec<_> = indices
            .iter()
            .map(|index| packages[*index].path.display().to_string())
            .collect();
        for (position, index) in indices.into_iter().enumerate() {
            let other_positions = (0..paths.len()).filter(|other| *other != position);
            let shown_paths: Vec<_> = other_positions
                .take(NAMESAKES_SHOWN_MAX)
                .map(|other| paths[other].as_str())
                .collect();
            let more = match paths.len() - 1 - shown_paths.len() {
                0 => String::new(),
                hidden_count => format!(" and {hidden_count} more"),
            };
            let message = format!("its name is also claimed by {}{more}", shown_paths.join(", "));
            let package = &mut packages[index];
            let error = Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("remove or rename one of them")
                .with_plugin(&*package.name);
            package.status = PackageStatus::Broken(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shared_name_messages(count: usize) -> Vec<String> {
        let package = |index: usize| {
            let error = Error::new(ErrorKind::Io, Phase::Registry, "it is not a component");
            Package::broken(Path::new(&format!("/plugins/{index:04}/calc.wasm")), error)
        };
        let mut packages: Vec<_> = (0..count).map(package).collect();
        reject_shared_names(&mut packages);
        let reasons = packages.iter().filter_map(Package::broken_reason);
        reasons.map(|reason| reason.message.to_string()).collect()
    }

    #[test]
    fn the_error_of_a_shared_name_lists_a_few_of_the_other_packages() {
        assert_eq!(
            shared_name_messages(2),
            ["/plugins/0001", "/plugins/0000"]
                .map(|directory| format!("its name is also claimed by {directory}/calc.wasm"))
        );
        assert_eq!(
            shared_name_messages(5)[1],
            "its name is also claimed by /plugins/0000/calc.wasm, /plugins/0002/calc.wasm, /plugins/0003/calc.wasm and 1 more"
        );
        let longest = shared_name_messages(4_096).iter().map(String::len).max();
        assert!(longest < Some(200), "length of the longest message: {longest:?}");
    }
}
