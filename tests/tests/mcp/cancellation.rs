//! Cancelled requests stop their guests. CPU time is read from `/proc`.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::client::{Client, Transport};
use crate::{server, showcase};

/// Returns the CPU time of this process in clock ticks.
fn cpu_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let fields: Vec<_> = after_name.split(' ').collect();
    [11, 12]
        .iter()
        .map(|field| fields[*field].parse::<u64>().unwrap())
        .sum()
}

// attack: G7
#[tokio::test]
async fn cancelled_request_stops_a_guest_that_computes() {
    let (server, _directory) = server(&[("showcase", showcase().await)]).await;
    let mut client = Client::connect(&server, Transport::Lines).await;
    client.value("test_simple_text", json!({})).await;
    let spinning = client
        .send("tools/call", json!({"name": "spin", "arguments": {}}))
        .await;
    let before = cpu_ticks();
    while cpu_ticks() < before + 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client
        .notify("notifications/cancelled", json!({"requestId": spinning}))
        .await;
    // The same plugin answers, and then nothing computes any more.
    client.value("test_simple_text", json!({})).await;
    let idle = tokio::time::timeout(Duration::from_secs(120), wait_until_idle()).await;
    assert!(idle.is_ok(), "the guest still computes");
}

/// Waits until this process, and so every guest, uses no CPU for a second.
async fn wait_until_idle() {
    let mut idle = 0;
    while idle < 20 {
        let before = cpu_ticks();
        tokio::time::sleep(Duration::from_millis(50)).await;
        idle = if cpu_ticks() > before { 0 } else { idle + 1 };
    }
}
