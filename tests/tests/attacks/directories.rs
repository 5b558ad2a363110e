//! Attacks on the paths of granted directories: links that a guest plants, directories that it removes, and directories that must
//! not be granted.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use serde_json::json;
use toolwit::grants::{
    AccessMode, AccessRequest, Decision, Denial, DirectoryRule, GrantRules, GrantScope, GrantedVersion, NoGrantReason,
};
use toolwit::sandbox::{GrantsFile, NewGrant};

use crate::host::{Setup, TestHost, guests};

const OUTER: &str = r#"{ host = "{dir}/data", guest = "/out", access = "read-write" }"#;
const INNER: &str = r#"{ host = "{dir}/data/in", guest = "/in" }"#;
const WRITABLE_INNER: &str = r#"{ host = "{dir}/data/in", guest = "/in", access = "read-write" }"#;

fn files_grant(rules: &[&str]) -> String {
    format!("files = [{}]", rules.join(", "))
}

/// Prepares `data/in/a`, which is granted, and `outside/a`, which is not.
fn prepared_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [("data/in", "inside"), ("outside", "outside")] {
        fs::create_dir_all(directory.path().join(path)).unwrap();
        fs::write(directory.path().join(path).join("a"), text).unwrap();
    }
    directory
}

/// Makes the guest move the granted directory `/out/in` away and put a link to `outside` in its place.
async fn plant_link(host: &TestHost) {
    let change = |how: &str, path: &str, other: &str| json!({"how": how, "path": path, "other": other});
    host.value("change", change("rename", "/out/in", "/out/moved")).await;
    host.value("change", change("symlink", "../outside", "/out/in")).await;
    assert!(host.data().join("in").is_symlink());
}

/// Starts another host with the directory and the grants file of an earlier one, as the next process does.
async fn next_process(host: TestHost, setup: Setup) -> TestHost {
    setup.directory(host.directory).start().await
}

/// Returns why the access of a failed call was denied.
async fn denial_reason(host: &TestHost, tool: &str, arguments: serde_json::Value) -> String {
    let result = host.call(tool, arguments).await.unwrap();
    assert!(
        result.is_error() && !result.for_llm.contains("outside"),
        "{}",
        result.for_llm
    );
    let denied = result.denied.first();
    denied.map(|denied| denied.reason.clone()).unwrap_or_default()
}

// attack: L1
#[tokio::test]
async fn a_planted_link_is_not_followed_for_the_same_plugin() {
    for inner in [INNER, WRITABLE_INNER] {
        let setup = || Setup::new().grant_to(&["probe"], &files_grant(&[OUTER, inner]));
        let host = setup().directory(prepared_directory()).start().await;
        assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "inside");
        plant_link(&host).await;
        let opened = host.value("read", json!({"path": "/in/a"})).await;
        assert_eq!(opened, "inside", "the running host has the directory itself");
        let host = next_process(host, setup()).await;
        let reason = denial_reason(&host, "read", json!({"path": "/in/a"})).await;
        assert!(reason.contains("is a link inside"), "{reason}");
        let reason = denial_reason(&host, "write", json!({"path": "/in/new", "text": "x"})).await;
        assert!(reason.contains("is a link inside"), "{reason}");
        assert!(!host.directory.path().join("outside/new").exists());
        assert_eq!(host.value("read", json!({"path": "/out/moved/a"})).await, "inside");
    }
}

// attack: L1
#[tokio::test]
async fn a_planted_link_is_not_followed_for_another_plugin() {
    let setup = || {
        let setup = Setup::new().grant_to(&["keeper"], &files_grant(&[INNER]));
        setup.grant_to(&["probe"], &files_grant(&[OUTER]))
    };
    let look = async |host: &TestHost| {
        let jar = host.call("jar_new", json!({"content": "sweets"})).await.unwrap();
        let tools: Vec<_> = jar.providers.iter().flat_map(|provider| provider.tools()).collect();
        let looked = host.call_in(&tools, "jar_thejar_look", json!({"path": "/in/a"})).await;
        looked.unwrap()
    };
    let host = setup().directory(prepared_directory()).start().await;
    assert_eq!(look(&host).await.for_llm, "sweets and inside");
    plant_link(&host).await;
    let host = next_process(host, setup()).await;
    let looked = look(&host).await;
    assert!(!looked.for_llm.contains("outside"), "{}", looked.for_llm);
    assert!(
        looked.denied[0].reason.contains("is a link inside"),
        "{:?}",
        looked.denied
    );
}

// attack: L2
#[tokio::test]
async fn another_directory_than_the_granted_one_needs_a_new_grant() {
    let host = Setup::new()
        .grant(&files_grant(&[OUTER, INNER]))
        .directory(prepared_directory())
        .start()
        .await;
    assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "inside");
    plant_link(&host).await;
    // Without the writable grant, only the records show that the link is not the operator's.
    host.regrant(&files_grant(&[INNER]));
    let reason = denial_reason(&host, "read", json!({"path": "/in/a"})).await;
    assert!(reason.contains("is a link inside"), "{reason}");
    let host = next_process(host, Setup::new().grant(&files_grant(&[INNER]))).await;
    let reason = denial_reason(&host, "read", json!({"path": "/in/a"})).await;
    assert!(reason.contains("is a link inside"), "{reason}");
    // The operator creates the directory again, and grants it again.
    let inner = host.data().join("in");
    fs::remove_file(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("a"), "again").unwrap();
    host.regrant(&files_grant(&[INNER]));
    let reason = denial_reason(&host, "read", json!({"path": "/in/a"})).await;
    assert!(reason.contains("grant it again"), "{reason}");
    let grant = NewGrant {
        plugin: "probe".to_owned(),
        version: GrantedVersion::Any,
        scope: GrantScope::Always,
        rules: read_rules(&inner, AccessMode::Read),
    };
    assert!(GrantsFile::new(host.grants_file()).grant(&grant).unwrap());
    assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "again");
}

// attack: L17
#[tokio::test]
async fn a_link_that_was_planted_under_another_grant_is_not_followed() {
    let inner = || Setup::new().grant(&files_grant(&[INNER]));
    let host = inner().directory(prepared_directory()).start().await;
    assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "inside");
    // For some time, as with the grants of another project, the directory around it is writable, and the inner one is not granted.
    let host = next_process(host, Setup::new().grant(&files_grant(&[OUTER]))).await;
    plant_link(&host).await;
    let host = next_process(host, inner()).await;
    let reason = denial_reason(&host, "read", json!({"path": "/in/a"})).await;
    assert!(reason.contains("could write to under another grant"), "{reason}");
    let grant = |directory: &Path| NewGrant {
        plugin: "probe".to_owned(),
        version: GrantedVersion::Any,
        scope: GrantScope::Always,
        rules: read_rules(directory, AccessMode::Read),
    };
    let file = GrantsFile::new(host.grants_file());
    let refused = file.grant(&grant(&host.data().join("in"))).unwrap_err().to_string();
    assert!(refused.contains("could write to under another grant"), "{refused}");
    let target = grant(&host.directory.path().join("outside"));
    assert!(
        file.grant(&target).unwrap(),
        "the operator can grant the directory itself"
    );
    assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "outside");
    assert!(!file.grant(&target).unwrap(), "nothing changes");
}

fn read_rules(directory: &Path, access: AccessMode) -> GrantRules {
    GrantRules {
        files: vec![DirectoryRule::new(directory.to_str().unwrap(), "/in", access, None).unwrap()],
        ..GrantRules::default()
    }
}

// attack: L7
#[tokio::test]
async fn a_removed_directory_denies_only_what_it_granted() {
    let own = r#"{ host = "{dir}/own-data", guest = "/own" }"#;
    let setup = || {
        let lines = format!("{}\nconfig = {{ colour = \"red\" }}", files_grant(&[OUTER, INNER, own]));
        Setup::new().grant(&lines)
    };
    let directory = prepared_directory();
    let own_data = directory.path().join("own-data");
    fs::create_dir(&own_data).unwrap();
    fs::write(own_data.join("a"), "own").unwrap();
    let host = setup().directory(directory).start().await;
    assert_eq!(host.value("read", json!({"path": "/in/a"})).await, "inside");
    let remove = |how: &str, path: &str| json!({"how": how, "path": path, "other": ""});
    host.value("change", remove("unlink", "/out/in/a")).await;
    host.value("change", remove("rmdir", "/out/in")).await;
    let works = async |host: &TestHost| {
        let reason = denial_reason(host, "read", json!({"path": "/in/a"})).await;
        assert!(
            reason.contains("line ") && reason.contains("cannot be enforced"),
            "{reason}"
        );
        host.value("write", json!({"path": "/out/b", "text": "x"})).await;
        assert_eq!(host.value("read", json!({"path": "/own/a"})).await, "own");
        assert_eq!(host.value("settings", json!({})).await, json!([["colour", "red"]]));
    };
    works(&host).await;
    let host = next_process(host, setup()).await;
    works(&host).await;
    // A directory that no plugin can replace applies again when it exists again.
    fs::remove_dir_all(&own_data).unwrap();
    let reason = denial_reason(&host, "read", json!({"path": "/own/a"})).await;
    assert!(
        reason.contains("own-data") && reason.contains("cannot be enforced"),
        "{reason}"
    );
    fs::create_dir(&own_data).unwrap();
    fs::write(own_data.join("a"), "new").unwrap();
    assert_eq!(host.value("read", json!({"path": "/own/a"})).await, "new");
}

// attack: L8
#[tokio::test]
async fn explain_knows_used_grants_missing_directories_and_nested_rules() {
    let within = r#"{ host = "{dir}/data/in", guest = "/out/in" }"#;
    let missing = r#"{ host = "{dir}/nowhere", guest = "/nowhere" }"#;
    let host = Setup::new()
        .grant(&files_grant(&[OUTER, within, missing]))
        .directory(prepared_directory())
        .start()
        .await;
    let decide = async |host: &TestHost, path: &'static str, mode| {
        let registry = host.host.registry();
        let probe = registry
            .plugins()
            .find(|plugin| plugin.name() == "probe")
            .unwrap()
            .clone();
        probe.explain(&AccessRequest::File(path, mode)).await.unwrap().decision
    };
    // A read-only rule does not protect files that the guest can name through a writable directory.
    let writes = decide(&host, "/out/in/a", AccessMode::ReadWrite).await;
    assert_eq!(writes, Decision::Allowed { rule: Some(1) });
    host.value("write", json!({"path": "/out/in/a", "text": "changed"}))
        .await;
    let reads = decide(&host, "/nowhere/a", AccessMode::Read).await;
    assert!(matches!(reads, Decision::Denied(Denial::Unenforceable(_))), "{reads:?}");
    denial_reason(&host, "read", json!({"path": "/nowhere/a"})).await;
    // Removed while the host runs.
    host.regrant(&files_grant(&[INNER]));
    assert!(decide(&host, "/in/a", AccessMode::Read).await.is_allowed());
    fs::remove_dir_all(host.data().join("in")).unwrap();
    let reads = decide(&host, "/in/a", AccessMode::Read).await;
    assert!(matches!(reads, Decision::Denied(Denial::Unenforceable(_))), "{reads:?}");
    // Used up by another process.
    let once = format!("scope = \"once\"\n{}", files_grant(&[OUTER]));
    host.regrant(&once);
    assert!(decide(&host, "/out/a", AccessMode::Read).await.is_allowed());
    let grants = GrantsFile::new(host.grants_file()).read().unwrap();
    let used: String = grants
        .grants
        .iter()
        .map(|grant| format!("{}\n", grant.identity()))
        .collect();
    fs::write(host.grants_file().with_extension("toml.used"), used).unwrap();
    let reads = decide(&host, "/out/a", AccessMode::Read).await;
    assert_eq!(reads, Decision::Denied(Denial::NoGrant(NoGrantReason::UsedUp)));
    denial_reason(&host, "entries", json!({"path": "/out"})).await;
}

// attack: L10
#[tokio::test]
async fn a_directory_with_plugins_is_granted_for_reading_only() {
    let plugins = guests().await;
    let host = Setup::new().start().await;
    let probe = |host: &TestHost| {
        let registry = host.host.registry();
        registry
            .plugins()
            .find(|plugin| plugin.name() == "probe")
            .unwrap()
            .clone()
    };
    let refused = probe(&host)
        .check_grant(&read_rules(plugins, AccessMode::ReadWrite))
        .await;
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("for reading only"), "{refused}");
    let around = read_rules(plugins.parent().unwrap(), AccessMode::ReadWrite);
    assert!(probe(&host).check_grant(&around).await.is_err());
    let readable = probe(&host).check_grant(&read_rules(plugins, AccessMode::Read)).await;
    readable.unwrap();
    let writable = format!("{{ host = {plugins:?}, guest = \"/plugins\", access = \"read-write\" }}");
    let host = Setup::new().grant(&files_grant(&[&writable])).start().await;
    let reason = denial_reason(&host, "write", json!({"path": "/plugins/probe.wasm", "text": "x"})).await;
    assert!(reason.contains("for reading only"), "{reason}");
}
