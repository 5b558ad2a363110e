//! Tests of scans of plugin directories.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use super::*;
use crate::store::{
    CallRecord, CheckOutcome, CheckStage, DynamicToolsRecord, DynamicToolsStore, MemoryStore, PackageRecord, Store,
    StoreError, StoredTool, ToolHealth, ToolKey, ToolQuery,
};
use toolwit_sandbox::{CodeCacheLocation, Runtime, RuntimeOptions, Scope};

fn runtime() -> Arc<Runtime> {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    Runtime::new(options).unwrap()
}

/// Returns a component with one tool, which takes two numbers.
fn component(export: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (param i32 i32) (result i32) local.get 0))
            (core instance $i (instantiate $m))
            (func (export "{export}") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Writes a file and sets its modification time to `age` ago.
fn write_aged(path: &Path, bytes: &[u8], age: Duration) {
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

/// The age of a file that is no longer changing.
const SETTLED_AGE: Duration = Duration::from_secs(3_600);

/// A store that counts the package records that are written or deleted.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    update_count: AtomicUsize,
}

impl Store for CountingStore {
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError> {
        self.store.packages()
    }

    fn update_packages(&self, changed: &[PackageRecord], deleted: &[String]) -> Result<(), StoreError> {
        self.update_count
            .fetch_add(changed.len() + deleted.len(), Ordering::Relaxed);
        self.store.update_packages(changed, deleted)
    }

    fn health(&self) -> Result<std::collections::BTreeMap<ToolKey, ToolHealth>, StoreError> {
        self.store.health()
    }

    fn tools(&self, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError> {
        self.store.tools(query)
    }

    fn record_calls(&self, tool: &ToolKey, calls: &CallRecord) -> Result<(), StoreError> {
        self.store.record_calls(tool, calls)
    }
}

impl DynamicToolsStore for CountingStore {
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        self.store.dynamic_tools(plugin, digest)
    }

    fn save_dynamic_tools(&self, records: &[DynamicToolsRecord]) -> Result<(), StoreError> {
        self.store.save_dynamic_tools(records)
    }
}

/// Returns the ids of the tools that a search finds, best first.
fn search_ids(registry: &Registry, intent: &str) -> Vec<String> {
    registry
        .search(&Query::new(intent), |_| true)
        .into_iter()
        .map(|hit| hit.id)
        .collect()
}

#[tokio::test]
async fn second_scan_takes_unchanged_packages_from_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path_of = |name: &str| directory.path().join(name);
    write_aged(&path_of("one.wasm"), &component("add-numbers"), SETTLED_AGE);
    write_aged(&path_of("two.wasm"), &component("scrape-page"), SETTLED_AGE);
    write_aged(
        &path_of("two.toml"),
        b"use_case = \"reading news\"\nlimits.wall = \"5s\"",
        SETTLED_AGE,
    );
    let store = Arc::new(CountingStore::default());
    let scan = async || {
        Registry::scan_into(&runtime(), &[directory.path().to_owned()], store.clone())
            .await
            .unwrap()
    };
    let take_update_count = || store.update_count.swap(0, Ordering::Relaxed);

    assert_eq!(search_ids(&scan().await, "scraping pages"), ["two#scrape-page"]);
    assert_eq!(take_update_count(), 2);
    // Replaces the component by zeros of the same length and with the same modification time. A scan that reads the zeros
    // marks the package as broken.
    let length = fs::metadata(path_of("two.wasm")).unwrap().len();
    let modified = fs::metadata(path_of("two.wasm")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(path_of("two.wasm")).unwrap();
    std::io::Write::write_all(&mut &file, &vec![0; usize::try_from(length).unwrap()]).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(search_ids(&scan().await, "scraping pages"), ["two#scrape-page"]);
    assert_eq!(take_update_count(), 0);

    write_aged(&path_of("two.wasm"), &component("send-email"), SETTLED_AGE / 2);
    let registry = scan().await;
    assert_eq!(search_ids(&registry, "send an email"), ["two#send-email"]);
    assert_eq!(search_ids(&registry, "scraping pages"), [""; 0]);
    assert_eq!(take_update_count(), 1);

    fs::remove_file(path_of("one.wasm")).unwrap();
    assert_eq!(scan().await.packages().len(), 1);
    assert_eq!((take_update_count(), store.packages().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn recently_written_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("one.wasm"), component("first")).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let scan = async || {
        Registry::scan_into(&runtime(), &[directory.path().to_owned()], store.clone())
            .await
            .unwrap()
    };
    scan().await;
    fs::write(directory.path().join("one.wasm"), component("other")).unwrap();
    assert_eq!(search_ids(&scan().await, "other"), ["one#other"]);
}

// accept: 104, accept: 105, accept: 131
#[tokio::test]
async fn manifest_next_to_a_component_or_in_its_folder_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path_of = |name: &str| directory.path().join(name);
    fs::write(path_of("plain.wasm"), component("compute")).unwrap();
    fs::write(
        path_of("plain.toml"),
        "use_case = \"When temperatures are converted\"\ntags = [\"celsius\"]",
    )
    .unwrap();
    fs::create_dir(path_of("boxed")).unwrap();
    fs::write(path_of("boxed/boxed.wasm"), component("work")).unwrap();
    fs::write(path_of("boxed/boxed.toml"), "category = \"cooking\"").unwrap();
    fs::write(path_of("wrong.wasm"), component("run-it")).unwrap();
    fs::write(path_of("wrong.toml"), "colour = \"red\"").unwrap();
    let registry = Registry::scan(&runtime(), &[directory.path().to_owned()])
        .await
        .unwrap();
    let [boxed, plain, wrong] = registry.packages() else {
        panic!("three packages")
    };
    assert_eq!((boxed.tier(), plain.tier()), (Tier::Minimal, Tier::Rich));
    let description = &plain.plugin().unwrap().inspection().tools[0].description;
    assert!(description.contains("When temperatures are converted"), "{description}");
    assert!(
        wrong.broken_reason().unwrap().message.contains("wrong.toml:1:1"),
        "{:?}",
        wrong.broken_reason()
    );
    assert_eq!(search_ids(&registry, "temperature in celsius"), ["plain#compute"]);
    assert_eq!(search_ids(&registry, "cooking"), ["boxed#work"]);
    assert_eq!(
        search_ids(&registry, "run it"),
        [""; 0],
        "a broken package is not found"
    );
}

#[tokio::test]
async fn a_refused_component_is_validated_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.wasm");
    let valid = component("add-numbers");
    let mut damaged = valid.clone();
    damaged[8..].fill(0);
    write_aged(&path, &damaged, SETTLED_AGE);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let store = Arc::new(CountingStore::default());
    let scan = async || {
        let registry = Registry::scan_into(&runtime(), &[directory.path().to_owned()], store.clone()).await;
        registry.unwrap().packages()[0].broken_reason().cloned()
    };
    let take_update_count = || store.update_count.swap(0, Ordering::Relaxed);
    let refusal = scan().await.unwrap();
    assert_eq!(refusal.kind, toolwit_core::ErrorKind::MalformedComponent);
    assert_eq!(take_update_count(), 1);
    // A scan that reads the component again would find that it is valid now.
    fs::write(&path, &valid).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let restored = scan().await.unwrap();
    assert_eq!((restored.kind, &restored.message), (refusal.kind, &refusal.message));
    assert_eq!(take_update_count(), 0);
    write_aged(&path, &valid, SETTLED_AGE / 2);
    assert!(scan().await.is_none());
    assert_eq!(take_update_count(), 1);
}

#[tokio::test]
async fn broken_tool_ranks_last_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    write_aged(
        &directory.path().join("alpha.wasm"),
        &component("play-song"),
        SETTLED_AGE,
    );
    write_aged(
        &directory.path().join("beta.wasm"),
        &component("play-song"),
        SETTLED_AGE,
    );
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let scan = async || {
        Registry::scan_into(&runtime(), &[directory.path().to_owned()], store.clone())
            .await
            .unwrap()
    };
    assert_eq!(
        search_ids(&scan().await, "play a song"),
        ["alpha#play-song", "beta#play-song"]
    );
    let failure = CheckOutcome::Failure("it trapped".to_owned());
    let digest = scan().await.packages()[0].plugin().unwrap().inspection().digest.clone();
    let alpha = ToolKey::new(digest, "alpha#play-song");
    store
        .record_calls(
            &alpha,
            &CallRecord::check(CheckStage::Execution, failure, health::now_ms()),
        )
        .unwrap();
    assert_eq!(
        search_ids(&scan().await, "play a song"),
        ["beta#play-song", "alpha#play-song"]
    );
    store
        .record_calls(
            &alpha,
            &CallRecord::check(CheckStage::Execution, CheckOutcome::Success, health::now_ms()),
        )
        .unwrap();
    assert_eq!(
        search_ids(&scan().await, "play a song")[0],
        "alpha#play-song",
        "a success clears the failure"
    );
}

mod live;
