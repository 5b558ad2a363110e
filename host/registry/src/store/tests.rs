//! Tests of the contract that both stores implement.
#![allow(clippy::unwrap_used, clippy::panic)]

use toolwit_sandbox::{KeyValueError, KeyValueStore, MemoryKeyValueStore};

use super::*;

pub(super) fn package(path: &str, digest: &str, exports: &[&str]) -> PackageRecord {
    let tool = |export: &&str| ToolRecord {
        id: format!("p#{export}"),
        export: (*export).to_owned(),
        description: "Does it".to_owned(),
        quality_percent: 50,
        name: (*export).to_owned(),
        terms: "do".to_owned(),
    };
    PackageRecord {
        path: path.to_owned(),
        stamp: "1".to_owned(),
        name: "p".to_owned(),
        digest: digest.to_owned(),
        category: Some("math".to_owned()),
        tier: "minimal".to_owned(),
        inspection: "{}".to_owned(),
        tools: exports.iter().map(tool).collect(),
        methods: vec![MethodRecord {
            id: "p#[method]thing.look".to_owned(),
            name: "thing_look".to_owned(),
            description: "Looks".to_owned(),
            terms: "look".to_owned(),
            entry_tools: exports.iter().map(|export| format!("p#{export}")).collect(),
        }],
        ..PackageRecord::default()
    }
}

pub(super) fn key(digest: &str, tool: &str) -> ToolKey {
    ToolKey::new(digest, tool)
}

// accept: 124
fn tools_are_deleted_with_their_package(store: &dyn Store) {
    let first = package("/a.wasm", "d1", &["add", "sub"]);
    store
        .update_packages(&[first.clone(), package("/b.wasm", "d2", &["mul"])], &[])
        .unwrap();
    assert_eq!(store.packages().unwrap()[0], first);
    store.update_packages(std::slice::from_ref(&first), &[]).unwrap();
    assert_eq!(
        store.packages().unwrap().len(),
        2,
        "a package replaces the package with the same path"
    );
    store
        .record_calls(
            &key("d2", "p#mul"),
            &CallRecord::check(CheckStage::Execution, CheckOutcome::Success, 7),
        )
        .unwrap();
    store.update_packages(&[], &["/b.wasm".to_owned()]).unwrap();
    assert_eq!(store.packages().unwrap(), [first]);
    assert!(
        store.health().unwrap().is_empty(),
        "the health of a tool is deleted with its package"
    );
}

fn uses_are_counted_without_a_check(store: &dyn Store) {
    store
        .update_packages(&[package("/a.wasm", "d1", &["add"])], &[])
        .unwrap();
    let calls = CallRecord {
        uses: 3,
        ..CallRecord::default()
    };
    for _ in 0..2 {
        store.record_calls(&key("d1", "p#add"), &calls).unwrap();
    }
    let health = store.health().unwrap()[&key("d1", "p#add")].clone();
    assert_eq!((health.uses, health.execution), (6, HealthState::Unknown));
}

// accept: 122, accept: 136
fn success_clears_a_failure_and_a_changed_component_has_no_health(store: &dyn Store) {
    store
        .update_packages(&[package("/a.wasm", "d1", &["add"])], &[])
        .unwrap();
    let failed = CheckOutcome::Failure("it trapped".to_owned());
    store
        .record_calls(
            &key("d1", "p#add"),
            &CallRecord::check(CheckStage::Execution, failed.clone(), 5),
        )
        .unwrap();
    let health = store.health().unwrap()[&key("d1", "p#add")].clone();
    assert_eq!(
        (health.loading, health.execution),
        (HealthState::Unknown, HealthState::Broken)
    );
    assert_eq!((health.error.as_deref(), health.checked_ms), (Some("it trapped"), 5));

    store
        .update_packages(&[package("/a.wasm", "d1", &["add", "sub"])], &[])
        .unwrap();
    assert!(
        store.health().unwrap()[&key("d1", "p#add")].is_broken(),
        "a package with the same component keeps its health"
    );

    store
        .record_calls(
            &key("d1", "p#add"),
            &CallRecord::check(CheckStage::Execution, CheckOutcome::Success, 9),
        )
        .unwrap();
    let health = store.health().unwrap()[&key("d1", "p#add")].clone();
    assert_eq!(
        (health.loading, health.execution, health.uses),
        (HealthState::Healthy, HealthState::Healthy, 0)
    );
    assert_eq!((health.error, health.checked_ms), (None, 9));

    store
        .record_calls(
            &key("d1", "p#add"),
            &CallRecord::check(CheckStage::Loading, failed.clone(), 10),
        )
        .unwrap();
    store
        .update_packages(&[package("/a.wasm", "d2", &["add"])], &[])
        .unwrap();
    assert!(store.health().unwrap().is_empty());
    store
        .record_calls(
            &key("d2", "missing#tool"),
            &CallRecord::check(CheckStage::Loading, failed.clone(), 11),
        )
        .unwrap();
    assert!(store.health().unwrap().is_empty());
}

fn values_are_separated_by_plugin_and_bucket_and_limited(values: &dyn KeyValueStore) {
    values.set("one", "a", "key", b"value", 150).unwrap();
    assert_eq!(values.get("one", "a", "key").unwrap().unwrap(), b"value");
    assert_eq!(values.get("other", "a", "key").unwrap(), None, "another plugin");
    assert_eq!(values.get("one", "a/key", "").unwrap(), None, "another bucket");
    let result = values.set("one", "b", "large", &[0; 100], 150);
    assert!(
        matches!(result, Err(KeyValueError::Full { bytes_max: 150 })),
        "{result:?}"
    );
    let result = values.set("one", "b", "", b"", 130);
    assert!(
        matches!(result, Err(KeyValueError::Full { .. })),
        "an entry counts more bytes than its key and its value"
    );
    assert_eq!(
        values.get("one", "b", "large").unwrap(),
        None,
        "a refused value is not stored"
    );
    values.set("one", "a", "key", b"other", 150).unwrap();
    for (bucket, key) in [("a", ""), ("a", "x"), ("a/", "y"), ("", "z"), ("b", "w")] {
        values.set("one", bucket, key, b"", 600).unwrap();
    }
    assert_eq!(values.keys("one", "a", None, 10).unwrap(), ["", "key", "x"]);
    assert_eq!(values.keys("one", "a", Some("key"), 10).unwrap(), ["x"]);
    assert_eq!(values.keys("one", "a", None, 2).unwrap(), ["", "key"]);
    assert_eq!(values.keys("one", "", None, 10).unwrap(), ["z"]);
    values.delete("one", "a", "key").unwrap();
    values.delete("one", "a", "key").unwrap();
    assert_eq!(values.get("one", "a", "key").unwrap(), None);
    assert_eq!(values.get("one", "a", "x").unwrap().unwrap(), b"");
}

// attack: C19, attack: B18, attack: L19
#[test]
fn values_in_memory_are_separated_and_limited() {
    values_are_separated_by_plugin_and_bucket_and_limited(&MemoryKeyValueStore::new());
}

fn save_tools(store: &dyn Store, plugin: &str, digest: &str, tools: &str) -> Result<(), StoreError> {
    store.save_dynamic_tools(&[DynamicToolsRecord {
        plugin: plugin.to_owned(),
        digest: digest.to_owned(),
        tools: tools.to_owned(),
    }])
}

fn dynamic_tools_belong_to_a_plugin_name_and_digest(store: &dyn Store) {
    store.update_packages(&[package("/a.wasm", "d1", &[])], &[]).unwrap();
    assert_eq!(store.dynamic_tools("p", "d1").unwrap(), None);
    save_tools(store, "p", "d1", "first").unwrap();
    save_tools(store, "p", "d1", "second").unwrap();
    assert_eq!(store.dynamic_tools("p", "d1").unwrap().as_deref(), Some("second"));
    for (plugin, digest) in [("p", "d2"), ("q", "d1")] {
        assert_eq!(store.dynamic_tools(plugin, digest).unwrap(), None, "{plugin} {digest}");
    }
    store.update_packages(&[package("/a.wasm", "d2", &[])], &[]).unwrap();
    save_tools(store, "p", "d2", "third").unwrap();
    assert_eq!(
        store.dynamic_tools("p", "d1").unwrap(),
        None,
        "tools of a component that no package has are deleted"
    );
    assert_eq!(store.dynamic_tools("p", "d2").unwrap().as_deref(), Some("third"));
}

#[test]
fn memory_store_meets_the_contract() {
    tools_are_deleted_with_their_package(&MemoryStore::new());
    success_clears_a_failure_and_a_changed_component_has_no_health(&MemoryStore::new());
    uses_are_counted_without_a_check(&MemoryStore::new());
    dynamic_tools_belong_to_a_plugin_name_and_digest(&MemoryStore::new());
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    // attack: C19, attack: B18, attack: L19
    #[test]
    fn sqlite_store_meets_the_contract() {
        tools_are_deleted_with_their_package(&SqliteStore::in_memory().unwrap());
        success_clears_a_failure_and_a_changed_component_has_no_health(&SqliteStore::in_memory().unwrap());
        uses_are_counted_without_a_check(&SqliteStore::in_memory().unwrap());
        values_are_separated_by_plugin_and_bucket_and_limited(&SqliteStore::in_memory().unwrap());
        dynamic_tools_belong_to_a_plugin_name_and_digest(&SqliteStore::in_memory().unwrap());
    }

    #[test]
    fn store_of_an_earlier_version_is_migrated() {
        for version in [1, 2] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store.db");
            let old_database = rusqlite::Connection::open(&path).unwrap();
            old_database.execute_batch(include_str!("sqlite/schema.sql")).unwrap();
            if version == 2 {
                old_database
                    .execute_batch(include_str!("sqlite/dynamic_tools.sql"))
                    .unwrap();
                old_database
                    .execute_batch("INSERT INTO told_tools VALUES ('q', 'd', 'old')")
                    .unwrap();
            }
            old_database.pragma_update(None, "user_version", version).unwrap();
            old_database
                .execute_batch("INSERT INTO key_values VALUES ('plugin', '6:bucket/key', x'01')")
                .unwrap();
            old_database
                .execute_batch(
                    "INSERT INTO packages (path, stamp, name, digest, tier, inspection, content)
                 VALUES ('/old.wasm', '1', 'old', 'd0', 'minimal', '{}', 'hash')",
                )
                .unwrap();
            drop(old_database);
            let store = SqliteStore::open(&path).unwrap();
            assert_eq!(store.get("plugin", "bucket", "key").unwrap(), Some(vec![1]));
            let packages = store.packages().unwrap();
            assert_eq!(
                packages[0].content_hash, "",
                "a record without methods has an empty hash, so that the package is read from its files again"
            );
            let tools = store.dynamic_tools("q", "d").unwrap();
            assert_eq!(tools.as_deref(), (version == 2).then_some("old"), "version {version}");
            dynamic_tools_belong_to_a_plugin_name_and_digest(&store);
        }
    }

    #[test]
    fn concurrent_changes_of_two_connections_are_stored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/store.db");
        let (one, other) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
        std::thread::scope(|scope| {
            for (store, name) in [(&one, "a"), (&other, "b")] {
                scope.spawn(move || {
                    for number in 0..50 {
                        let path = format!("/{name}{number}.wasm");
                        store.update_packages(&[package(&path, "d", &["f"])], &[]).unwrap();
                    }
                });
            }
        });
        drop((one, other));
        assert_eq!(SqliteStore::open(&path).unwrap().packages().unwrap().len(), 100);
    }

    // attack: L13
    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_a_store() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let mode_of = |name: &str| {
            let metadata = std::fs::metadata(directory.path().join(name)).unwrap();
            metadata.permissions().mode() & 0o777
        };
        let files = ["store.db", "store.db-wal", "store.db-shm"];
        let path = directory.path().join(files[0]);
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(files.map(mode_of), [0o600; 3]);
        // An earlier version of the program created stores with these permissions.
        for file in files {
            std::fs::set_permissions(directory.path().join(file), std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        let second_store = SqliteStore::open(&path).unwrap();
        assert_eq!(files.map(mode_of), [0o600; 3]);
        drop((store, second_store));
    }

    #[test]
    fn damaged_store_is_renamed_and_created_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let store = SqliteStore::open(&path).unwrap();
        let packages: Vec<_> = (0..300)
            .map(|index| package(&format!("/{index}.wasm"), "d", &["f", "g"]))
            .collect();
        store.update_packages(&packages, &[]).unwrap();
        drop(store);

        let length = std::fs::metadata(&path).unwrap().len();
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(4096)).unwrap();
        file.write_all(&vec![0xa5; usize::try_from(length).unwrap() - 4096])
            .unwrap();
        drop(file);
        let store = SqliteStore::open(&path).unwrap();
        assert!(store.packages().unwrap().is_empty());
        store.update_packages(&packages, &[]).unwrap();
        assert!(path.with_extension("db.damaged").exists());
    }

    #[test]
    fn foreign_file_is_refused_and_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let text_path = directory.path().join("notes.txt");
        let notes = b"these are notes, and longer than the header of a database would be: ".repeat(99);
        std::fs::write(&text_path, &notes).unwrap();
        let database_path = directory.path().join("other.db");
        let database = rusqlite::Connection::open(&database_path).unwrap();
        database.execute_batch("CREATE TABLE packages (name TEXT)").unwrap();
        drop(database);
        let database_bytes = std::fs::read(&database_path).unwrap();
        for path in [&text_path, &database_path] {
            let error = SqliteStore::open(path).unwrap_err();
            assert!(matches!(error, StoreError::Foreign), "{error}");
        }
        assert_eq!(std::fs::read(&text_path).unwrap(), notes);
        assert_eq!(std::fs::read(&database_path).unwrap(), database_bytes);
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            2,
            "no temporary file is left"
        );
    }

    #[test]
    fn store_of_a_newer_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        drop(SqliteStore::open(&path).unwrap());
        rusqlite::Connection::open(&path)
            .unwrap()
            .pragma_update(None, "user_version", 99)
            .unwrap();
        let result = SqliteStore::open(&path);
        assert!(matches!(result, Err(StoreError::Newer { found: 99, .. })), "{result:?}");
    }
}
