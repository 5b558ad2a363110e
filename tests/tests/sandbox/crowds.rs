//! Many concurrent calls.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::{Arguments, ErrorKind, ToolContext};
use toolwit_tests::{Conversation, Guests};

// attack: B6, attack: I2, accept: 120
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_endless_loops_end_while_other_calls_are_served() {
    let guests = Guests::new();
    let (compute, counter) = (guests.wat("compute").await, guests.wat("counter").await);
    let limits = LimitOverrides::default()
        .with_fuel_max(2_000_000)
        .with_wall_max(Duration::from_secs(20));
    let crowd = Conversation::over(&[&compute]).limited(limits);
    let (spin, context) = (crowd.tool("spin"), crowd.context.clone());
    let loops = tokio::spawn(async move { join_all((0..200).map(|_| spin.call(Arguments::new(), &context))).await });
    let mut served = 0;
    let mut other = Conversation::over(&[&counter]);
    while !loops.is_finished() {
        assert_eq!(other.value("next", json!({})).await, json!(1));
        served += 1;
    }
    for outcome in loops.await.unwrap() {
        assert_eq!(outcome.unwrap_err().report().kind, ErrorKind::Fuel);
    }
    assert!(served > 20, "{served} calls were served");
}

#[tokio::test(flavor = "multi_thread")]
async fn full_pool_reports_busy_and_recovers() {
    let guests = Guests::with(|options| {
        // Two instances of this guest, which has two memories.
        options.engine_limits.instances_max = 4;
        options.engine_limits.calls_per_plugin_max = 8;
        options.engine_limits.computing_calls_max = 8;
    });
    let compute = guests.wat("compute").await;
    let limits = LimitOverrides::default().with_wall_max(Duration::from_millis(200));
    let mut conversation = Conversation::over(&[&compute]).limited(limits);
    let (spin, context) = (conversation.tool("spin"), conversation.context.clone());
    let outcomes = join_all((0..4).map(|_| spin.call(Arguments::new(), &context))).await;
    let kinds: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_err().report().kind)
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == ErrorKind::Busy).count(),
        2,
        "{kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| **kind == ErrorKind::Timeout).count(),
        2,
        "{kinds:?}"
    );
    assert_eq!(conversation.value("fine", json!({})).await, json!(42));
}

// attack: K8
#[tokio::test]
async fn idle_sessions_leave_room_for_calls() {
    let guests = Guests::with(|options| options.engine_limits.instances_max = 4);
    let (token, counter) = (guests.wat("token").await, guests.wat("counter").await);
    let mut idle = Vec::new();
    for _ in 0..10 {
        let mut conversation = Conversation::over(&[&token]);
        conversation.value("make", json!({})).await;
        idle.push(conversation);
    }
    assert_eq!(Conversation::over(&[&counter]).value("next", json!({})).await, json!(1));
    // The most recent session is alive, and an earlier one was evicted.
    let newest = idle.last_mut().unwrap();
    assert_eq!(newest.value("token_bump", json!({"token_id": "1"})).await, json!(1));
    let error = idle[0].error("token_bump", json!({"token_id": "1"})).await;
    assert_eq!(error.kind, ErrorKind::EntityGone);
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_times_out_in_the_queue_reports_it() {
    let guests = Guests::with(|options| options.engine_limits.calls_per_plugin_max = 1);
    let compute = guests.wat("compute").await;
    let long =
        Conversation::over(&[&compute]).limited(LimitOverrides::default().with_wall_max(Duration::from_millis(500)));
    let (spin, spin_context) = (long.tool("spin"), long.context.clone());
    let running = tokio::spawn(async move { spin.call(Arguments::new(), &spin_context).await });
    let mut short =
        Conversation::over(&[&compute]).limited(LimitOverrides::default().with_wall_max(Duration::from_millis(50)));
    let error = loop {
        // Until the other call has taken the only permit.
        match short.call("fine", json!({})).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind, ErrorKind::Busy);
    assert_eq!(running.await.unwrap().unwrap_err().report().kind, ErrorKind::Timeout);
    short.context = ToolContext::new();
    assert_eq!(short.value("fine", json!({})).await, json!(42));
}

// attack: B2
#[tokio::test]
async fn process_memory_does_not_grow_with_the_number_of_calls() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let limits = LimitOverrides::default()
        .with_memory_bytes_max(64 << 20)
        .with_wall_max(Duration::from_secs(5));
    let mut conversation = Conversation::over(&[&compute]).limited(limits);
    for _ in 0..5 {
        conversation.error("fill_both", json!({})).await;
    }
    let before = resident_bytes();
    for _ in 0..200 {
        conversation.error("fill_both", json!({})).await;
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
}

/// Resident memory of this process in bytes; 0 where the system does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0);
    kib << 10
}
