//! The memory of the host under guests that make objects of the host, and never drop them.
//!
//! It is a test program of its own, because it measures the process.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;
use toolwit_tests::{Conversation, Guests};

const MIB: u64 = 1 << 20;

/// The memory that a host may take in addition to its configured limits.
const ALLOWANCE_BYTES: u64 = 64 * MIB;

/// Reads a line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib: u64 = line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap();
    kib << 10
}

/// Returns the resident memory, and sets the recorded peak to it.
fn begin_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    status("VmRSS")
}

// attack: K1
#[tokio::test]
async fn objects_that_a_guest_never_drops_stay_within_the_limit_of_host_memory() {
    let guests = Guests::new();
    let hoarder = guests.rust("hoarder").await;
    let (memory, host_memory) = (32 * MIB, 24 * MIB);
    let limits = LimitOverrides::default()
        .with_memory_bytes_max(memory)
        .with_host_memory_bytes_max(host_memory);
    for (kind, count, few) in [
        ("bodies", 1_000, 20),
        ("fields", 3_000, 50),
        ("clones", 3_000, 50),
        ("authorities", 1_250, 5),
        ("methods", 1_250, 5),
    ] {
        let mut conversation = Conversation::over(&[&hoarder]).limited(limits.clone());
        let hoard = |count: u32| json!({"kind": kind, "count": count});
        assert_eq!(
            conversation.value("hoard", hoard(few)).await,
            json!(few),
            "{kind}: a few are allowed"
        );
        let before = begin_peak();
        let error = conversation.error("hoard", hoard(count)).await;
        let grown = status("VmHWM").saturating_sub(before);
        assert_eq!(error.kind, ErrorKind::Resources, "{kind}: {error:?}");
        assert_eq!(error.limit.as_ref().unwrap().limit, "host_memory_bytes_max", "{kind}");
        let allowed = memory + host_memory + ALLOWANCE_BYTES;
        assert!(grown <= allowed, "{kind}: {} MiB of {} MiB", grown / MIB, allowed / MIB);
        assert_eq!(
            conversation.value("hoard", hoard(few)).await,
            json!(few),
            "the next call works"
        );

        // A session keeps its objects, so that calls within the limit add up.
        let before = begin_peak();
        let mut calls = 0;
        let error = loop {
            match conversation.call("hoard", hoard(few)).await {
                Ok(_) => calls += 1,
                Err(error) => break error,
            }
            assert!(calls < 1_000, "{kind}: the objects of earlier calls do not count");
        };
        let grown = status("VmHWM").saturating_sub(before);
        assert_eq!(error.kind, ErrorKind::Resources, "{kind}: {error:?}");
        assert!(grown <= allowed, "{kind}: {} MiB in {calls} calls", grown / MIB);
    }
}
