//! Looking through plugin directories. Nothing is compiled and no guest code runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use tokio::sync::mpsc;

use super::catalog::{Catalog, TermExtractor};
use super::document::standing;
use super::health::now_ms;
use super::listing::{Listed, MissingPath, list};
use super::package::{Package, PackageStatus, identity_of};
use super::reading::{Earlier, Reading, Seen, read, stored_path};
use super::view::{Newest, Registry, View};
use crate::store::{PackageRecord, Store, StoreError, ToolHealth, ToolKey};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::{Plugin, Runtime};

/// How many packages one task reads at most: those of a task share the words that they have in common.
const CHUNK_MAX: usize = 256;

/// How many tasks a processor has, where there are packages enough.
const CHUNKS_PER_PROCESSOR: usize = 4;

/// How many times that may be read and not yet be in the store.
const CHUNKS_WAITING_MAX: usize = 64;

/// Where packages are looked for, and where is kept what was found.
#[derive(Clone)]
pub(super) struct Scan {
    runtime: Arc<Runtime>,
    places: Arc<[PathBuf]>,
    absent: MissingPath,
    store: Arc<dyn Store>,
}

/// What was read of each file, whatever other files say.
pub(super) type SeenFiles = HashMap<PathBuf, Arc<Seen>>;

/// What another look at the directories found.
pub(super) struct Another {
    pub(super) seen: SeenFiles,
    /// What there is now, if anything changed.
    pub(super) registry: Option<Registry>,
    /// Whether a file is still being written, so that a further look is worth it soon.
    pub(super) is_unsettled: bool,
}

type Chunk = Vec<(Listed, Earlier)>;
type Health = BTreeMap<ToolKey, ToolHealth>;

impl Scan {
    pub(super) fn new(runtime: Arc<Runtime>, places: Vec<PathBuf>, absent: MissingPath, store: Arc<dyn Store>) -> Self {
        Self {
            runtime,
            places: places.into(),
            absent,
            store,
        }
    }

    pub(super) fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// Reads everything, and takes from the store what did not change since it was read.
    pub(super) async fn first(&self) -> Result<(Registry, SeenFiles), Error> {
        let (looking, remembering) = (self.clone(), self.clone());
        // The directory is read while the store is.
        let (listed, mut known) = tokio::try_join!(
            blocking(move || list(&looking.places, looking.absent)),
            blocking(move || Ok(records(&*remembering.store))),
        )?;
        let here: HashSet<_> = listed.iter().map(|file| stored_path(&file.path)).collect();
        let chunks = chunks(listed, |path| match known.remove(&stored_path(path)) {
            Some(record) => Earlier::Record(Box::new(record)),
            None => Earlier::Nothing,
        });
        let gone = gone(&known, &self.places, &here);
        let readings = self.read(chunks, gone).await?;
        let own = self.clone();
        blocking(move || {
            let health = warned(own.store.health());
            let seen = by_file(readings);
            let from = Before {
                catalog: Catalog::new(),
                usable: HashMap::new(),
                newest: Arc::default(),
            };
            let registry = assemble(&seen, from, &health, own.store);
            Ok((registry, seen))
        })
        .await
    }

    /// Looks again: files that are as they were cost a question to the file system. A place that is not there has no
    /// packages; it may come back.
    pub(super) async fn again(&self, earlier: &Registry, seen: &SeenFiles) -> Result<Another, Error> {
        let places = self.places.clone();
        let listed = blocking(move || list(&places, MissingPath::Empty)).await?;
        let gone: Vec<_> = {
            let here: HashSet<_> = listed.iter().map(|file| &file.path).collect();
            let gone = seen.keys().filter(|path| !here.contains(path));
            gone.map(|path| stored_path(path)).collect()
        };
        let chunks = chunks(listed, |path| match seen.get(path) {
            Some(seen) => Earlier::Seen(seen.clone()),
            None => Earlier::Unseen,
        });
        let is_gone = !gone.is_empty();
        let readings = self.read(chunks, gone).await?;
        let is_unsettled = readings.iter().any(|reading| reading.is_unsettled);
        let is_same = |reading: &Reading| match (&reading.seen, seen.get(&reading.path)) {
            (Some(now), Some(before)) => now.is_same(before),
            (now, before) => now.is_none() && before.is_none(),
        };
        let is_changed = is_gone || !readings.iter().all(is_same);
        let (own, earlier) = (self.clone(), earlier.clone());
        blocking(move || {
            let seen = by_file(readings);
            let registry = is_changed.then(|| republish(&earlier, &seen, own.store));
            Ok(Another {
                seen,
                registry,
                is_unsettled,
            })
        })
        .await
    }

    /// Reads packages. What changed is written into the store meanwhile, and what is gone is forgotten there.
    async fn read(&self, chunks: Vec<Chunk>, gone: Vec<String>) -> Result<Vec<Reading>, Error> {
        let (changes, changed) = mpsc::channel(CHUNKS_WAITING_MAX);
        let mut read = std::pin::pin!(self.read_chunks(chunks));
        let reading = async move {
            let mut readings = Vec::new();
            while let Some(mut chunk) = read.try_next().await? {
                let records: Vec<_> = chunk.iter_mut().filter_map(|reading| reading.changed.take()).collect();
                if !records.is_empty() {
                    // Nobody listens any more when the store failed, which costs time at the next start and nothing else.
                    let _ = changes.send(records).await;
                }
                readings.extend(chunk);
            }
            Ok(readings)
        };
        let (readings, ()) = tokio::try_join!(reading, self.write(changed, gone))?;
        Ok(readings)
    }

    fn read_chunks(&self, chunks: Vec<Chunk>) -> impl Stream<Item = Result<Vec<Reading>, Error>> + use<> {
        let (runtime, store) = (self.runtime.clone(), self.store.clone());
        let read_chunk = move |chunk: Chunk| {
            let (runtime, store) = (runtime.clone(), store.clone());
            let mut terms = TermExtractor::new();
            let read_one = move |(file, known)| read(&runtime, &*store, file, known, &mut terms);
            blocking(move || Ok(chunk.into_iter().map(read_one).collect()))
        };
        futures::stream::iter(chunks).map(read_chunk).buffered(processors())
    }

    /// Writes what comes until nothing comes any more, or the store fails.
    async fn write(&self, mut changed: mpsc::Receiver<Vec<PackageRecord>>, mut gone: Vec<String>) -> Result<(), Error> {
        let mut waiting = Vec::new();
        loop {
            let chunks = changed.recv_many(&mut waiting, CHUNKS_WAITING_MAX).await;
            if chunks == 0 && gone.is_empty() {
                return Ok(());
            }
            let records: Vec<_> = waiting.drain(..).flatten().collect();
            let (store, gone) = (self.store.clone(), std::mem::take(&mut gone));
            let is_written = blocking(move || Ok(warned(store.update_packages(&records, &gone).map(|()| true))));
            if !is_written.await? {
                return Ok(());
            }
        }
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// What the store knows, by path; nothing when it cannot be read.
fn records(store: &dyn Store) -> HashMap<String, PackageRecord> {
    warned(store.packages())
        .into_iter()
        .map(|record| (record.path.clone(), record))
        .collect()
}

pub(super) fn warned<T: Default>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the store cannot be used; everything is read anew"
        );
        T::default()
    })
}

/// Pairs files with what is known of them, a task's worth at a time.
fn chunks(listed: Vec<Listed>, mut known: impl FnMut(&Path) -> Earlier) -> Vec<Chunk> {
    let at_once = (listed.len() / (processors() * CHUNKS_PER_PROCESSOR)).clamp(1, CHUNK_MAX);
    let mut chunks: Vec<Chunk> = Vec::new();
    for file in listed {
        let known = known(&file.path);
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < at_once => chunk.push((file, known)),
            _ => chunks.push(vec![(file, known)]),
        }
    }
    chunks
}

/// Chooses the remembered packages of these places that are no longer there. A store may know other places too.
fn gone(known: &HashMap<String, PackageRecord>, places: &[PathBuf], here: &HashSet<String>) -> Vec<String> {
    let places: Vec<_> = places.iter().map(|place| stored_path(place)).collect();
    let is_below = |path: &Path| places.iter().any(|place| path.starts_with(place));
    known
        .keys()
        .filter(|path| is_below(Path::new(path)) && !here.contains(*path))
        .cloned()
        .collect()
}

/// What was read, by file.
fn by_file(readings: Vec<Reading>) -> SeenFiles {
    let seen = readings
        .into_iter()
        .filter_map(|reading| Some((reading.path, reading.seen?)));
    seen.collect()
}

/// The plugins that a search can find tools of, by file.
fn searchable(packages: &[Package]) -> HashMap<PathBuf, Arc<Plugin>> {
    let usable = packages
        .iter()
        .filter_map(|package| Some((package.path.clone(), package.plugin()?.clone())));
    usable.collect()
}

/// Puts a view together after an earlier one. Blocks.
pub(super) fn republish(earlier: &Registry, seen: &SeenFiles, store: Arc<dyn Store>) -> Registry {
    let health = warned(store.health());
    let from = Before {
        catalog: earlier.view.catalog.clone(),
        usable: searchable(earlier.packages()),
        newest: earlier.view.newest.clone(),
    };
    assemble(seen, from, &health, store)
}

/// What the view before knew.
struct Before {
    /// It knows the tools of these plugins.
    catalog: Catalog,
    usable: HashMap<PathBuf, Arc<Plugin>>,
    newest: Arc<Newest>,
}

/// Puts a view together. The catalogue is changed where plugins are others than before.
fn assemble(seen: &SeenFiles, from: Before, health: &Health, store: Arc<dyn Store>) -> Registry {
    let Before {
        mut catalog,
        usable: before,
        newest,
    } = from;
    let mut packages: Vec<_> = seen.values().map(|seen| seen.package.clone()).collect();
    refuse_shared_names(&mut packages);
    let now = now_ms();
    for package in &packages {
        let Some(plugin) = package.plugin() else { continue };
        if before
            .get(&package.path)
            .is_some_and(|earlier| Arc::ptr_eq(earlier, plugin))
        {
            continue;
        }
        let Some(seen) = seen.get(&package.path) else { continue };
        catalog.put_indexed(&package.path.to_string_lossy(), seen.tools.iter());
        for tool in seen.tools.iter().filter(|_| !health.is_empty()) {
            if let Some(known) = health.get(&ToolKey::new(plugin.digest(), tool.id.as_str())) {
                catalog.set_standing(&tool.id, standing(tool.standing.quality, known, now));
            }
        }
    }
    let after = searchable(&packages);
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        catalog.remove(&path.to_string_lossy());
    }
    let view = View {
        packages,
        catalog,
        store,
        newest,
    };
    let view = Arc::new(view);
    view.newest.is_now(&view);
    Registry { view }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = "reading the plugins failed unexpectedly";
        Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
    })
}

/// Refuses all packages that claim one name: nothing says which of them the operator means.
fn refuse_shared_names(packages: &mut [Package]) {
    packages.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    let mut claims: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, package) in packages.iter().enumerate() {
        claims.entry(identity_of(&package.name)).or_default().push(at);
    }
    for claimants in claims.into_values().filter(|claimants| claimants.len() > 1) {
        let paths: Vec<_> = claimants
            .iter()
            .map(|at| packages[*at].path.display().to_string())
            .collect();
        for (own, at) in claimants.into_iter().enumerate() {
            let others: Vec<_> = (0..paths.len())
                .filter(|other| *other != own)
                .map(|at| paths[at].as_str())
                .collect();
            let message = format!("its name is also claimed by {}", others.join(", "));
            let package = &mut packages[at];
            let error = Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("remove or rename one of them")
                .with_plugin(&*package.name);
            package.status = PackageStatus::Broken(error);
        }
    }
}
