//! Attacks on the quotas of writable directories.
#![cfg(unix)]

use std::fs;

use serde_json::json;

use crate::host::Setup;

const QUOTA_BYTES: u64 = 200 << 10;
const WRITE: &str = r#"files = [{ host = "{dir}/data", guest = "/data", access = "read-write", quota = "200KiB" }]"#;

// attack: L3
#[tokio::test]
async fn removed_files_count_while_they_are_open() {
    let host = Setup::new().grant(WRITE).start().await;
    let orphan = json!({"path": "/data/file", "bytes": 50_000, "files": 100});
    let held = host.value("orphan", orphan).await.as_u64().unwrap();
    assert!((50_000..=QUOTA_BYTES).contains(&held), "{held}");
    // They were closed with the instance.
    let mut tries = 0;
    while host
        .value("fill", json!({"path": "/data/file", "bytes": 100_000}))
        .await
        .as_u64()
        < Some(100_000)
    {
        tries += 1;
        assert!(tries < 10_000, "the space of closed files is freed");
    }
}

// attack: L4
#[tokio::test]
async fn a_file_does_not_move_from_one_quota_to_another() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["data", "small"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let grant = r#"files = [
        { host = "{dir}/data", guest = "/data", access = "read-write" },
        { host = "{dir}/small", guest = "/small", access = "read-write", quota = "20KiB" },
    ]"#;
    let host = Setup::new().grant(grant).directory(directory).start().await;
    host.value("fill", json!({"path": "/data/large", "bytes": 1 << 20}))
        .await;
    host.value("change", json!({"how": "mkdir", "path": "/data/folder", "other": ""}))
        .await;
    for (how, path) in [
        ("rename", "/data/large"),
        ("rename", "/data/folder"),
        ("link", "/data/large"),
    ] {
        let change = json!({"how": how, "path": path, "other": "/small/moved"});
        let error = host.failure("change", change).await;
        assert!(
            error.to_lowercase().contains("cross-device") || error.contains("EXDEV"),
            "{error}"
        );
    }
    for how in ["rename", "link"] {
        let smuggle = |other: &str| json!({"how": how, "path": "/data/new", "other": other, "bytes": 100_000});
        host.failure("smuggle", smuggle("/small/new")).await;
        host.value("smuggle", smuggle(&format!("/data/{how}"))).await;
    }
    assert_eq!(fs::read_dir(host.directory.path().join("small")).unwrap().count(), 0);
}

// attack: L5
#[tokio::test]
async fn no_hole_is_larger_than_the_quota() {
    let host = Setup::new().grant(WRITE).start().await;
    let size = || fs::metadata(host.data().join("sparse")).map_or(0, |metadata| metadata.len());
    for offset in [1_u64 << 40, 1 << 30, QUOTA_BYTES] {
        let error = host
            .failure("leap", json!({"path": "/data/sparse", "offset": offset}))
            .await;
        assert_eq!(size(), 0, "{offset}: {error}");
    }
    host.failure("change", json!({"how": "grow", "path": "/data/sparse", "other": ""}))
        .await;
    assert_eq!(size(), 0);
    host.value("leap", json!({"path": "/data/sparse", "offset": QUOTA_BYTES / 2}))
        .await;
    assert_eq!(size(), QUOTA_BYTES / 2 + 1);
    // The hole was counted: there is no space for another one.
    host.failure("leap", json!({"path": "/data/other", "offset": QUOTA_BYTES / 2}))
        .await;
}

// attack: L6
#[tokio::test]
async fn a_tree_beyond_the_longest_path_does_not_block_later_writes() {
    let host = Setup::new().grant(WRITE).start().await;
    let change = |how: &str, path: &str, other: &str| json!({"how": how, "path": path, "other": other});
    let mut bottoms = Vec::new();
    for root in ["a", "b"] {
        let mut path = format!("/data/{root}");
        for _ in 0..10 {
            host.value("change", change("mkdir", &path, "")).await;
            path = format!("{path}/{}", "n".repeat(250));
        }
        host.value("change", change("mkdir", &path, "")).await;
        bottoms.push(path);
    }
    host.value("change", change("rename", "/data/b", &format!("{}/b", bottoms[0])))
        .await;
    // The next process measures the directory before its first write.
    let host = Setup::new().grant(WRITE).directory(host.directory).start().await;
    host.value("write", json!({"path": "/data/small", "text": "fits"}))
        .await;
    let full = host
        .value("fill", json!({"path": "/data/large", "bytes": 1 << 30}))
        .await;
    assert!(
        full.as_u64().unwrap() <= QUOTA_BYTES - (22 << 12),
        "the tree counts: {full}"
    );
}
