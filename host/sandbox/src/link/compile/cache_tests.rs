//! Tests of the code cache (damaged entries, entries of other users, the size limit) and of compilation in the background.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::*;
use toolwit_core::limits::CODE_CACHE_BYTES_MAX;
use toolwit_core::{Arguments, Tool, ToolContext};

fn component(number: i32) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const {number}))
            (core instance $i (instantiate $m))
            (func (export "answer") (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Calls the tool of a component in a fresh runtime, as a new process would. Returns the result.
async fn answer(cache: &Path, number: i32) -> String {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Directory(cache.to_owned()),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let plugin = Plugin::from_bytes(&runtime, "oracle", component(number)).await.unwrap();
    let tools: Vec<Arc<dyn Tool>> = plugin.tools(&Scope::new());
    let result = tools[0].call(Arguments::new(), &ToolContext::new()).await.unwrap();
    assert!(matches!(plugin.compile_status(), CompileStatus::Ready { .. }));
    result.for_llm
}

fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "code"))
        .collect();
    entries.sort();
    entries
}

// attack: H5
#[tokio::test]
async fn damaged_or_exchanged_code_is_compiled_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("code");
    assert_eq!(answer(&cache, 1).await, "1");
    let [entry] = entries(&cache).try_into().unwrap();
    let code = fs::read(&entry).unwrap();
    for damaged in [&b""[..], b"no machine code", &code[..code.len() / 2]] {
        fs::write(&entry, damaged).unwrap();
        assert_eq!(answer(&cache, 1).await, "1");
        assert_eq!(fs::read(&entry).unwrap(), code, "the entry is restored");
    }
    // Code and hash of another component under this name are refused, because the hash covers the name.
    assert_eq!(answer(&cache, 2).await, "2");
    let other_entry = entries(&cache).into_iter().find(|path| *path != entry).unwrap();
    fs::copy(&other_entry, &entry).unwrap();
    let hash = entry.with_added_extension("hash");
    fs::copy(other_entry.with_added_extension("hash"), hash).unwrap();
    assert_eq!(answer(&cache, 1).await, "1");
    // Code whose hash has another key is refused, such as code that another user's process wrote.
    let other_user = directory.path().join("other_user");
    assert_eq!(answer(&other_user, 1).await, "1");
    let [entry] = entries(&other_user).try_into().unwrap();
    let hash = entry.with_added_extension("hash");
    let hash_of_other_key = fs::read(&hash).unwrap();
    fs::write(other_user.join("key"), [7; 32]).unwrap();
    assert_eq!(answer(&other_user, 1).await, "1");
    assert_ne!(
        fs::read(&hash).unwrap(),
        hash_of_other_key,
        "the code was compiled again"
    );
}

// attack: H7
#[tokio::test]
async fn a_key_of_another_length_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("code");
    assert_eq!(answer(&cache, 1).await, "1");
    for key in [&b""[..], &[7; 31], &[7; 33]] {
        fs::write(cache.join("key"), key).unwrap();
        assert_eq!(answer(&cache, 1).await, "1");
        assert_eq!(fs::read(cache.join("key")).unwrap().len(), 32);
        let written = fs::metadata(&entries(&cache)[0]).unwrap().modified().unwrap();
        assert_eq!(answer(&cache, 1).await, "1");
        let cached = fs::metadata(&entries(&cache)[0]).unwrap().modified().unwrap();
        assert_eq!(written, cached, "the code that the new key wrote is used");
    }
}

// attack: H5
#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_others_can_enter_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let shared = directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(answer(&shared, 1).await, "1");
    assert!(entries(&shared).is_empty());
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&shared, &link).unwrap();
    assert!(CodeCache::open(&link).is_err());
}

#[tokio::test]
async fn the_least_recently_used_entry_is_removed_first() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("code");
    let long_ago = SystemTime::now() - Duration::from_secs(7 * 24 * 3_600);
    for number in 1..=3 {
        answer(&directory, number).await;
    }
    for entry in entries(&directory) {
        let file = fs::File::options().append(true).open(entry).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    // Using an entry updates the time of its last use.
    answer(&directory, 2).await;
    let cache = CodeCache::open(&directory).unwrap();
    let usage = cache.usage().unwrap();
    assert_eq!((usage.entries, usage.bytes_max), (3, CODE_CACHE_BYTES_MAX));
    let removed = cache.set_bytes_max(usage.bytes / 2).unwrap();
    assert_eq!((removed.entries, cache.usage().unwrap().entries), (2, 1));
    answer(&directory, 2).await;
    let digests = cache.digests().unwrap();
    let context = PackageContext {
        name: "",
        adjacent_wit: None,
    };
    assert!(
        digests.contains(&Inspection::from_bytes(&component(2), context).unwrap().digest),
        "{digests:?}"
    );
    assert_eq!(cache.usage().unwrap().bytes_max, usage.bytes / 2);
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        4,
        "code, hash, key and limit"
    );
}

#[test]
fn several_threads_can_set_the_limit_although_killed_processes_left_files() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("code");
    let cache = CodeCache::open(&directory).unwrap();
    for name in ["bytes-max", "probe"] {
        fs::write(directory.join(format!(".{name}.{}", std::process::id())), "left").unwrap();
    }
    std::thread::scope(|scope| {
        for bytes_max in 1..=4 {
            let (cache, directory) = (&cache, &directory);
            scope.spawn(move || {
                for _ in 0..20 {
                    cache.set_bytes_max(bytes_max).unwrap();
                    CodeCache::open(directory).unwrap();
                }
            });
        }
    });
    assert!((1..=4).contains(&cache.bytes_max()));
}

#[tokio::test]
async fn compiling_in_the_background_is_reported_and_happens_once() {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let plugin = Plugin::from_bytes(&runtime, "oracle", component(1)).await.unwrap();
    assert_eq!(plugin.compile_status().word(), "not-compiled");
    plugin.compile_in_background();
    assert_ne!(plugin.compile_status().word(), "not-compiled");
    plugin.compile_in_background();
    plugin.compile().await.unwrap();
    assert_eq!(plugin.compile_status().word(), "compiled");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gone.wasm");
    fs::write(&path, component(2)).unwrap();
    let plugin = Plugin::from_file(&runtime, "gone", path.clone()).await.unwrap();
    fs::remove_file(&path).unwrap();
    plugin.compile().await.unwrap_err();
    assert!(matches!(plugin.compile_status(), CompileStatus::Failed(_)));
    fs::write(&path, component(2)).unwrap();
    plugin.compile().await.unwrap();
    assert_eq!(plugin.compile_status().word(), "compiled", "a failure is not cached");
}

#[tokio::test]
async fn a_component_that_was_compiled_in_the_background_is_not_retained() {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oracle.wasm");
    fs::write(&path, component(1)).unwrap();
    let plugin = Plugin::from_file(&runtime, "oracle", path.clone()).await.unwrap();
    plugin.compile_in_background();
    while !matches!(plugin.compile_status(), CompileStatus::Ready { .. }) {
        assert!(!matches!(plugin.compile_status(), CompileStatus::Failed(_)));
        tokio::task::yield_now().await;
    }
    assert!(plugin.is_compiled(), "although no caller waited");
    plugin.retain_component();
    fs::remove_file(&path).unwrap();
    plugin.read_component().unwrap_err();
    let tools = plugin.tools(&Scope::new());
    let result = tools[0].call(Arguments::new(), &ToolContext::new()).await.unwrap();
    assert_eq!(result.for_llm, "1");
}
