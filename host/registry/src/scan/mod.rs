//! Scanning plugin directories. Nothing is compiled and no guest code runs.
//!
//! `listing` finds the component files. `stamp` detects changed files. `read` reads changed packages, and `record` and `refusal`
//! restore unchanged packages from the store. `inspect` combines a component with its manifest, `tool_document` describes a tool
//! for the search, and `assemble` builds a [`Registry`] from all packages.

mod assemble;
mod inspect;
mod listing;
mod read;
mod record;
mod refusal;
mod stamp;
mod tool_document;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use tokio::sync::mpsc;

use self::assemble::first_registry;
use self::listing::{ComponentFile, list};
use self::read::{CachedState, ReadOutcome, read_package};
use crate::catalog::{EmbeddingModel, TermExtractor};
use crate::package::stored_path;
use crate::registry::Registry;
use crate::store::{MemoryStore, PackageRecord, Store, StoreError};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Runtime;

pub(crate) use assemble::next_registry;
pub(crate) use inspect::{DESCRIPTION_SECTION, PackageContent, VERSION_SECTION, inspect_content};
pub(crate) use read::{FailedDiscovery, ScannedFile, downloaded_package};
pub(crate) use record::{content_hash, indexed_tools, package_record};

pub use inspect::{inspect_package, lint_package};
pub use listing::MissingPath;

/// The maximum number of packages that one task reads. The packages of a task share a cache of word stems.
const CHUNK_PACKAGES_MAX: usize = 256;

/// The minimum number of tasks per processor, if there are enough packages. The limit [`CHUNK_PACKAGES_MAX`] can require more
/// tasks.
const CHUNKS_PER_PROCESSOR_MIN: usize = 4;

/// The maximum number of chunks of new records that wait for the writer of the store.
const CHUNKS_WAITING_MAX: usize = 64;

/// The paths to scan for packages, and the store of their metadata.
#[derive(Clone)]
pub(crate) struct Scan {
    runtime: Arc<Runtime>,
    paths: Arc<[PathBuf]>,
    missing: MissingPath,
    store: Arc<dyn Store>,
    embedding_model: Option<Arc<dyn EmbeddingModel>>,
}

/// The state of each package when its files were last read, by the path of its component. This state does not depend on the
/// other packages. `assemble` marks packages that share a name as broken when it builds a [`Registry`].
pub(crate) type ScannedFiles = HashMap<PathBuf, Arc<ScannedFile>>;

/// The result of a repeated scan.
pub(crate) struct Rescan {
    pub(crate) files: ScannedFiles,
    /// The new snapshot, if something changed.
    pub(crate) registry: Option<Registry>,
    /// Whether another scan is needed soon, because a file may still be changing.
    pub(crate) is_unsettled: bool,
}

/// The packages that one task reads, with their cached states.
type Chunk = Vec<(ComponentFile, CachedState)>;

impl Scan {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        paths: Vec<PathBuf>,
        missing: MissingPath,
        store: Arc<dyn Store>,
        embedding_model: Option<Arc<dyn EmbeddingModel>>,
    ) -> Self {
        Self {
            runtime,
            paths: paths.into(),
            missing,
            store,
            embedding_model,
        }
    }

    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Scans all paths. A package is restored from its stored record if the record has the stamp of the package's files.
    pub(crate) async fn first_scan(&self) -> Result<(Registry, ScannedFiles), Error> {
        let (listing_scan, store) = (self.clone(), self.store.clone());
        // The directories and the store are read concurrently.
        let (component_files, mut records) = tokio::try_join!(
            blocking(move || list(&listing_scan.paths, listing_scan.missing)),
            blocking(move || Ok(records_by_path(&*store))),
        )?;
        let present_paths: HashSet<_> = component_files.iter().map(|file| stored_path(&file.path)).collect();
        let chunks = chunks(component_files, |path| match records.remove(&stored_path(path)) {
            Some(record) => CachedState::Record(Box::new(record)),
            None => CachedState::NoRecord,
        });
        let deleted_paths = deleted_paths(&records, &self.paths, &present_paths);
        let outcomes = self.read_and_store(chunks, deleted_paths).await?;
        let (store, model) = (self.store.clone(), self.embedding_model.clone());
        let (registry, files) = blocking(move || {
            let files = files_by_path(outcomes);
            Ok((first_registry(&files, store, model), files))
        })
        .await?;
        // Builds the search index in the background, so that the caller can continue.
        let background_registry = registry.clone();
        drop(tokio::task::spawn_blocking(move || background_registry.catalog().len()));
        Ok((registry, files))
    }

    /// Scans all paths again and reads only the files that changed. A missing path counts as empty, because it may be
    /// created again.
    pub(crate) async fn rescan(&self, earlier: &Registry, files: &ScannedFiles) -> Result<Rescan, Error> {
        let paths = self.paths.clone();
        let component_files = blocking(move || list(&paths, MissingPath::Empty)).await?;
        let deleted_paths: Vec<_> = {
            let present_paths: HashSet<_> = component_files.iter().map(|file| &file.path).collect();
            let deleted_paths = files.keys().filter(|path| !present_paths.contains(path));
            deleted_paths.map(|path| stored_path(path)).collect()
        };
        let chunks = chunks(component_files, |path| match files.get(path) {
            Some(file) => CachedState::Scanned(file.clone()),
            None => CachedState::NotScanned,
        });
        let has_deleted_paths = !deleted_paths.is_empty();
        let outcomes = self.read_and_store(chunks, deleted_paths).await?;
        let is_unsettled = outcomes.iter().any(|outcome| outcome.is_unsettled);
        let is_same = |outcome: &ReadOutcome| match (&outcome.file, files.get(&outcome.path)) {
            (Some(file), Some(earlier_file)) => file.has_same_content(earlier_file),
            (file, earlier_file) => file.is_none() && earlier_file.is_none(),
        };
        let is_changed = has_deleted_paths || !outcomes.iter().all(is_same);
        let (store, earlier) = (self.store.clone(), earlier.clone());
        blocking(move || {
            let files = files_by_path(outcomes);
            let registry = is_changed.then(|| next_registry(&earlier, &files, store));
            Ok(Rescan {
                files,
                registry,
                is_unsettled,
            })
        })
        .await
    }

    /// Reads packages, and updates the store at the same time: writes the new records and deletes the records of the
    /// deleted paths.
    async fn read_and_store(&self, chunks: Vec<Chunk>, deleted_paths: Vec<String>) -> Result<Vec<ReadOutcome>, Error> {
        let (sender, records) = mpsc::channel(CHUNKS_WAITING_MAX);
        let mut chunks = std::pin::pin!(self.read_chunks(chunks));
        let reading = async move {
            let mut outcomes = Vec::new();
            while let Some(mut chunk) = chunks.try_next().await? {
                let new_records: Vec<_> = chunk
                    .iter_mut()
                    .filter_map(|outcome| outcome.new_record.take())
                    .collect();
                if !new_records.is_empty() {
                    // The receiver is closed if the store failed. The only effect is a slower next start.
                    let _ = sender.send(new_records).await;
                }
                outcomes.extend(chunk);
            }
            Ok(outcomes)
        };
        let (outcomes, ()) = tokio::try_join!(reading, self.write_records(records, deleted_paths))?;
        Ok(outcomes)
    }

    /// Returns the outcomes of each chunk. Several chunks are read at a time.
    fn read_chunks(&self, chunks: Vec<Chunk>) -> impl Stream<Item = Result<Vec<ReadOutcome>, Error>> + use<> {
        let scan = self.clone();
        let read_chunk = move |chunk: Chunk| {
            let (scan, mut terms) = (scan.clone(), TermExtractor::new());
            let read_one = move |(file, cached)| read_package(&scan, file, cached, &mut terms);
            blocking(move || Ok(chunk.into_iter().map(read_one).collect()))
        };
        futures::stream::iter(chunks)
            .map(read_chunk)
            .buffered(processor_count())
    }

    /// Writes the received records to the store until the channel closes or the store fails. Also deletes the records
    /// of the deleted paths.
    async fn write_records(
        &self,
        mut records: mpsc::Receiver<Vec<PackageRecord>>,
        mut deleted_paths: Vec<String>,
    ) -> Result<(), Error> {
        let mut received = Vec::new();
        loop {
            let received_count = records.recv_many(&mut received, CHUNKS_WAITING_MAX).await;
            // A count of 0 means that the channel is closed.
            if received_count == 0 && deleted_paths.is_empty() {
                return Ok(());
            }
            let batch: Vec<_> = received.drain(..).flatten().collect();
            let (store, deleted_paths) = (self.store.clone(), std::mem::take(&mut deleted_paths));
            let has_succeeded = blocking(move || {
                let result = store.update_packages(&batch, &deleted_paths).map(|()| true);
                Ok(or_default_with_warning(result))
            })
            .await?;
            if !has_succeeded {
                return Ok(());
            }
        }
    }
}

impl Registry {
    /// Scans directories and single component files for packages, several at a time.
    ///
    /// A package that cannot be used, or that shares its name with another package, is listed as broken, with the reason.
    /// In a directory, hidden entries are ignored, and so are files other than `.wasm` files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if a path does not exist or a directory cannot be read.
    pub async fn scan(runtime: &Arc<Runtime>, paths: &[PathBuf]) -> Result<Self, Error> {
        Self::scan_into(runtime, paths, Arc::new(MemoryStore::new())).await
    }

    /// Scans like [`Registry::scan`], but takes unchanged packages from a store and writes the others to it.
    ///
    /// If the store fails, a warning is logged and all packages are read from their files.
    ///
    /// # Errors
    /// Those of [`Registry::scan`].
    pub async fn scan_into(runtime: &Arc<Runtime>, paths: &[PathBuf], store: Arc<dyn Store>) -> Result<Self, Error> {
        let scan = Scan::new(runtime.clone(), paths.to_vec(), MissingPath::Error, store, None);
        let (registry, _) = scan.first_scan().await?;
        Ok(registry)
    }
}

fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Reads the store's records, by path. Returns no records if the store cannot be read.
fn records_by_path(store: &dyn Store) -> HashMap<String, PackageRecord> {
    or_default_with_warning(store.packages())
        .into_iter()
        .map(|record| (record.path.clone(), record))
        .collect()
}

/// Returns the value of a successful result. If the store failed, logs a warning and returns the default. A failed store is
/// not an error, because the metadata can be read from the directories again, and dynamic tools can be discovered again.
pub(crate) fn or_default_with_warning<T: Default>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the store cannot be used; this process continues without its data"
        );
        T::default()
    })
}

/// Pairs files with their cached state, in chunks. One task reads a chunk.
fn chunks(files: Vec<ComponentFile>, mut cached_state_of: impl FnMut(&Path) -> CachedState) -> Vec<Chunk> {
    let chunk_len = (files.len() / (processor_count() * CHUNKS_PER_PROCESSOR_MIN)).clamp(1, CHUNK_PACKAGES_MAX);
    let mut chunks: Vec<Chunk> = Vec::new();
    for file in files {
        let cached = cached_state_of(&file.path);
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk_len => chunk.push((file, cached)),
            _ => chunks.push(vec![(file, cached)]),
        }
    }
    chunks
}

/// Returns the paths of stored packages that are below `paths` and not in `present_paths`. The store may also have packages
/// of other directories. Their paths are not returned.
fn deleted_paths(
    records: &HashMap<String, PackageRecord>,
    paths: &[PathBuf],
    present_paths: &HashSet<String>,
) -> Vec<String> {
    let paths: Vec<_> = paths.iter().map(|path| stored_path(path)).collect();
    let is_below = |file: &Path| paths.iter().any(|path| file.starts_with(path));
    records
        .keys()
        .filter(|file| is_below(Path::new(file)) && !present_paths.contains(*file))
        .cloned()
        .collect()
}

/// Collects the states of the packages, by path. A package without a state is omitted.
fn files_by_path(outcomes: Vec<ReadOutcome>) -> ScannedFiles {
    let files = outcomes
        .into_iter()
        .filter_map(|outcome| Some((outcome.path, outcome.file?)));
    files.collect()
}

/// Runs blocking work on a thread of the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = "a task of the plugin registry failed unexpectedly";
        Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
    })
}
