//! Tests of the code cache (damaged entries, entries of other users, the size limit) and of compilation in the background.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::engine::Engines;
use crate::*;
use toolwit_core::limits::{CODE_CACHE_BYTES_MAX, EngineLimits};
use toolwit_core::{Arguments, Tool, ToolContext};

/// Returns a component whose only tool `answer` returns the number.
fn component_with_answer(number: i32) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const {number}))
            (core instance $i (instantiate $m))
            (func (export "answer") (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Calls the tool of [`component_with_answer`] in a new runtime, as a new process would. Returns the result.
async fn call_with_cache(cache: &Path, number: i32) -> String {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Directory(cache.to_owned()),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let plugin = Plugin::from_bytes(&runtime, "oracle", component_with_answer(number))
        .await
        .unwrap();
    let tools: Vec<Arc<dyn Tool>> = plugin.tools(&Scope::new());
    let result = tools[0].call(Arguments::new(), &ToolContext::new()).await.unwrap();
    assert!(matches!(plugin.compile_status(), CompileStatus::Ready { .. }));
    result.for_llm
}

/// Returns the paths of the files with machine code.
fn code_files(cache: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "code"))
        .collect();
    files.sort();
    files
}

/// As on a file system that is mounted with `noexec`, from which code cannot be mapped.
#[test]
fn the_code_of_an_entry_can_be_copied_into_memory_unless_it_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let cache = CodeCache::open(&directory.path().join("code")).unwrap();
    let engines = Engines::new(
        EngineLimits::default(),
        None,
        Compiler::InProcess,
        WasiVersions::default(),
    )
    .unwrap();
    let engine = engines.get(Profile::Plain).unwrap();
    let code = engine.wasmtime.precompile_component(&component_with_answer(1)).unwrap();
    cache.store(&engine, "digest", &code);
    let [entry] = code_files(cache.directory()).try_into().unwrap();
    let name = entry.file_name().unwrap().to_str().unwrap();
    cache.copy(&engine, name, &entry).unwrap();
    assert!(cache.copy(&engine, "another-name.code", &entry).is_err());
    fs::write(&entry, &code[..code.len() - 1]).unwrap();
    assert!(cache.copy(&engine, name, &entry).is_err());
}

// attack: H5
#[tokio::test]
async fn a_damaged_or_forged_entry_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("code");
    assert_eq!(call_with_cache(&cache, 1).await, "1");
    let [entry] = code_files(&cache).try_into().unwrap();
    let code = fs::read(&entry).unwrap();
    for damaged in [&b""[..], b"no machine code", &code[..code.len() / 2]] {
        fs::write(&entry, damaged).unwrap();
        assert_eq!(call_with_cache(&cache, 1).await, "1");
        assert_eq!(fs::read(&entry).unwrap(), code, "the code is compiled again and stored");
    }
    // Code and hash of another component under the name of this entry are refused, because the hash covers the name.
    assert_eq!(call_with_cache(&cache, 2).await, "2");
    let other_entry = code_files(&cache).into_iter().find(|path| *path != entry).unwrap();
    fs::copy(&other_entry, &entry).unwrap();
    let hash = entry.with_added_extension("hash");
    fs::copy(other_entry.with_added_extension("hash"), hash).unwrap();
    assert_eq!(call_with_cache(&cache, 1).await, "1");
    // Code whose hash was computed with another key is refused, such as code that another user's process wrote.
    let other_user = directory.path().join("other_user");
    assert_eq!(call_with_cache(&other_user, 1).await, "1");
    let [entry] = code_files(&other_user).try_into().unwrap();
    let hash = entry.with_added_extension("hash");
    let hash_of_other_key = fs::read(&hash).unwrap();
    fs::write(other_user.join("key"), [7; 32]).unwrap();
    assert_eq!(call_with_cache(&other_user, 1).await, "1");
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
    assert_eq!(call_with_cache(&cache, 1).await, "1");
    for key in [&b""[..], &[7; 31], &[7; 33]] {
        fs::write(cache.join("key"), key).unwrap();
        assert_eq!(call_with_cache(&cache, 1).await, "1");
        assert_eq!(fs::read(cache.join("key")).unwrap().len(), 32);
        let modified_when_stored = fs::metadata(&code_files(&cache)[0]).unwrap().modified().unwrap();
        assert_eq!(call_with_cache(&cache, 1).await, "1");
        let modified_after_use = fs::metadata(&code_files(&cache)[0]).unwrap().modified().unwrap();
        assert_eq!(
            modified_when_stored, modified_after_use,
            "the entry with the new key is used"
        );
    }
}

// attack: H5
#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_other_users_can_access_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let shared = directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(call_with_cache(&shared, 1).await, "1");
    assert!(code_files(&shared).is_empty());
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
        call_with_cache(&directory, number).await;
    }
    for entry in code_files(&directory) {
        let file = fs::File::options().append(true).open(entry).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    // The call updates the time of the entry's last use, because the last update is older than `TOUCH_INTERVAL`.
    call_with_cache(&directory, 2).await;
    let cache = CodeCache::open(&directory).unwrap();
    let usage = cache.usage().unwrap();
    assert_eq!((usage.entries, usage.bytes_max), (3, CODE_CACHE_BYTES_MAX));
    let removed = cache.set_bytes_max(usage.bytes / 2).unwrap();
    assert_eq!((removed.entries, cache.usage().unwrap().entries), (2, 1));
    call_with_cache(&directory, 2).await;
    let digests = cache.digests().unwrap();
    let context = PackageContext {
        name: "",
        adjacent_wit: None,
    };
    assert!(
        digests.contains(
            &Inspection::from_bytes(&component_with_answer(2), context)
                .unwrap()
                .digest
        ),
        "{digests:?}"
    );
    assert_eq!(cache.usage().unwrap().bytes_max, usage.bytes / 2);
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        4,
        "the files for the code, its hash, the key and the limit"
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
async fn the_compile_status_reports_background_compilation_and_a_failure_is_not_final() {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let plugin = Plugin::from_bytes(&runtime, "oracle", component_with_answer(1))
        .await
        .unwrap();
    assert_eq!(plugin.compile_status().word(), "not-compiled");
    plugin.compile_in_background();
    assert_ne!(plugin.compile_status().word(), "not-compiled");
    plugin.compile_in_background();
    plugin.compile().await.unwrap();
    assert_eq!(plugin.compile_status().word(), "compiled");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gone.wasm");
    fs::write(&path, component_with_answer(2)).unwrap();
    let plugin = Plugin::from_file(&runtime, "gone", path.clone()).await.unwrap();
    fs::remove_file(&path).unwrap();
    plugin.compile().await.unwrap_err();
    assert!(matches!(plugin.compile_status(), CompileStatus::Failed(_)));
    fs::write(&path, component_with_answer(2)).unwrap();
    plugin.compile().await.unwrap();
    assert_eq!(
        plugin.compile_status().word(),
        "compiled",
        "the component is compiled after a failure"
    );
}

#[tokio::test]
async fn the_bytes_of_a_component_that_was_compiled_in_the_background_are_not_retained() {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oracle.wasm");
    fs::write(&path, component_with_answer(1)).unwrap();
    let plugin = Plugin::from_file(&runtime, "oracle", path.clone()).await.unwrap();
    plugin.compile_in_background();
    while !matches!(plugin.compile_status(), CompileStatus::Ready { .. }) {
        assert!(!matches!(plugin.compile_status(), CompileStatus::Failed(_)));
        tokio::task::yield_now().await;
    }
    assert!(
        plugin.is_compiled(),
        "the plugin is compiled although no call waited for the compilation"
    );
    plugin.retain_component();
    fs::remove_file(&path).unwrap();
    plugin.read_component().unwrap_err();
    let tools = plugin.tools(&Scope::new());
    let result = tools[0].call(Arguments::new(), &ToolContext::new()).await.unwrap();
    assert_eq!(result.for_llm, "1");
}
