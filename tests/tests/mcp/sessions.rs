//! Many clients that come and go. Memory is read from `/proc`.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::client::{Client, Transport};
use crate::{server, showcase};

/// Returns the resident memory in KiB, and the number of open descriptors and threads.
fn usage() -> (u64, usize, usize) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = line.trim().trim_end_matches(" kB").parse().unwrap();
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    (memory, count("/proc/self/fd"), count("/proc/self/task"))
}

/// Connects, calls a tool and disconnects.
async fn visit(server: &toolwit_mcp_server::McpServer) {
    let mut client = Client::connect(server, Transport::Lines).await;
    client.value("test_simple_text", json!({})).await;
}

#[tokio::test]
#[ignore = "takes minutes: 10,000 sessions"]
async fn ten_thousand_sessions_leave_nothing_behind() {
    let (server, _directory) = server(&[("showcase", showcase().await)]).await;
    for _ in 0..1_000 {
        visit(&server).await;
    }
    let (memory, descriptors, threads) = usage();
    for _ in 0..10_000 {
        visit(&server).await;
    }
    let after = usage();
    assert!(after.0 < memory + 8 * 1_024, "{memory} KiB → {} KiB", after.0);
    assert!(after.1 <= descriptors + 4, "{descriptors} → {} descriptors", after.1);
    assert!(after.2 <= threads + 2, "{threads} → {} threads", after.2);
}
