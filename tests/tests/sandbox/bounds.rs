//! Each limit has its own error kind, which contains the limit and the use; the next call works.

use std::time::Duration;

use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::{Error, ErrorKind};
use toolwit_tests::{Conversation, Guests};

/// Limits that a test exceeds quickly.
fn small_limits() -> LimitOverrides {
    LimitOverrides::default()
        .with_fuel_max(20_000_000)
        .with_wall_max(Duration::from_secs(5))
        .with_memory_bytes_max(4 << 20)
}

/// Exceeds a limit, and checks that the same plugin and another one still answer.
async fn exceeded(guest: &str, tool: &str, arguments: Value, limits: LimitOverrides) -> Error {
    let guests = Guests::new();
    let (hostile, other) = (guests.wat(guest).await, guests.wat("counter").await);
    let mut conversation = Conversation::over(&[&hostile, &other]).limited(limits);
    let error = conversation.error(tool, arguments).await;
    assert_eq!(
        conversation.value("next", json!({})).await,
        json!(1),
        "another plugin answers"
    );
    assert_eq!(
        conversation.value("fine", json!({})).await,
        json!(42),
        "the same plugin answers"
    );
    assert_eq!(error.plugin.as_deref(), Some(guest));
    error
}

#[track_caller]
fn assert_limit(error: &Error, kind: ErrorKind, limit: &str, max: u64) {
    assert_eq!(error.kind, kind, "{error:#?}");
    assert!(error.kind.is_limit());
    let exceeded = error.limit.as_ref().expect("the error names the limit");
    assert_eq!((exceeded.limit, exceeded.max), (limit, max));
    assert!(exceeded.used >= exceeded.max, "{exceeded:?}");
    assert!(error.suggestion.is_some(), "{error:#?}");
}

// attack: B1
#[tokio::test]
async fn endless_loop_is_stopped_when_its_fuel_is_used_up() {
    let error = exceeded("compute", "spin", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::Fuel, "fuel_max", 20_000_000);
    assert_eq!(error.message, "the call used all its fuel of 20000000");
}

#[tokio::test]
async fn exceptions_without_end_are_stopped_by_fuel_or_memory() {
    // Throwing takes long for the fuel that it uses.
    let limits = small_limits().with_fuel_max(200_000);
    let error = exceeded("exceptions", "throw_forever", json!({}), limits).await;
    assert_limit(&error, ErrorKind::Fuel, "fuel_max", 200_000);
    let limits = small_limits().with_wall_max(Duration::from_secs(60));
    let error = exceeded("exceptions", "keep_forever", json!({}), limits).await;
    assert_limit(&error, ErrorKind::Memory, "memory_bytes_max", 4 << 20);
}

#[tokio::test]
async fn an_exception_that_is_not_caught_is_a_trap() {
    let error = exceeded("exceptions", "uncaught", json!({}), small_limits()).await;
    assert_eq!(error.kind, ErrorKind::Trap);
    assert!(
        error
            .message
            .starts_with("the guest trapped: it threw an exception and did not catch it"),
        "{error}"
    );
}

// attack: B1
#[tokio::test(flavor = "multi_thread")]
async fn endless_loop_is_stopped_at_its_deadline_and_not_before() {
    let wall = Duration::from_millis(300);
    let error = exceeded(
        "compute",
        "spin",
        json!({}),
        LimitOverrides::default().with_wall_max(wall),
    )
    .await;
    assert_limit(&error, ErrorKind::Timeout, "wall_max", 300);
    let used = error.limit.as_ref().unwrap().used;
    assert!((300..375).contains(&used), "{used} ms");
}

// attack: B8
#[tokio::test(flavor = "multi_thread")]
async fn guest_sleeping_in_a_host_call_is_stopped_at_its_deadline() {
    let limits = LimitOverrides::default().with_wall_max(Duration::from_millis(200));
    let error = exceeded("host-calls", "sleep", json!({"seconds": 3600}), limits).await;
    assert_limit(&error, ErrorKind::Timeout, "wall_max", 200);
    let used = error.limit.as_ref().unwrap().used;
    assert!((200..250).contains(&used), "{used} ms");
}

// attack: B15
#[tokio::test(flavor = "multi_thread")]
async fn guest_copying_gigabytes_is_stopped() {
    let limits = LimitOverrides::default()
        .with_wall_max(Duration::from_millis(300))
        .with_fuel_max(u64::MAX);
    let error = exceeded("compute", "copy", json!({}), limits).await;
    assert!(matches!(error.kind, ErrorKind::Timeout | ErrorKind::Fuel), "{error:#?}");
}

// attack: B3
#[tokio::test]
async fn endless_recursion_exhausts_only_the_guest_stack() {
    let error = exceeded("compute", "recurse", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::Stack, "stack_bytes_max", 1 << 20);
}

// attack: B2, attack: B7
#[tokio::test]
async fn memories_of_an_instance_share_one_limit() {
    let error = exceeded("compute", "fill_both", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::Memory, "memory_bytes_max", 4 << 20);
    assert_eq!(
        error.message,
        "the guest requested 4160 KiB of memory and may have 4 MiB"
    );
}

// attack: B2
#[tokio::test]
async fn guest_that_handles_a_failed_allocation_succeeds() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let mut conversation = Conversation::over(&[&compute]).limited(small_limits());
    let result = conversation.call("fill", json!({})).await.unwrap();
    assert_eq!(result.value, Some(json!(62)), "64 pages minus the two initial ones");
    assert_eq!(result.usage.unwrap().memory_bytes, 4 << 20);
}

// attack: B7
#[tokio::test]
async fn tables_are_limited() {
    let error = exceeded("compute", "fill_table", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::TableElements, "table_elements_max", 100_000);
}

#[tokio::test]
async fn guest_that_calls_the_host_endlessly_is_stopped() {
    let error = exceeded("host-calls", "flood", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::HostCalls, "host_calls_max", 10_000);
    assert_eq!(error.message, "the guest called the host more than 10000 times");
}

// attack: B10
#[tokio::test]
async fn host_resources_are_limited() {
    let error = exceeded("host-calls", "hoard", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::Resources, "resources_max", 4_096);
}

// attack: B10
#[tokio::test]
async fn handles_of_a_guest_are_limited() {
    let error = exceeded("token", "hoard", json!({}), small_limits()).await;
    assert_limit(&error, ErrorKind::Resources, "resources_max", 4_096);
}

// attack: B10
#[tokio::test]
async fn handles_of_a_session_are_limited_by_the_call_that_creates_them() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    conversation.value("many", json!({"count": 20})).await;
    let limited = |max| LimitOverrides::default().with_resources_max(max);
    let mut conversation = conversation.limited(limited(100));
    conversation.value("many", json!({"count": 20})).await;
    let mut conversation = conversation.limited(limited(10));
    let error = conversation.error("many", json!({"count": 20})).await;
    assert_limit(&error, ErrorKind::Resources, "resources_max", 10);
}

// attack: B9
#[tokio::test]
async fn request_for_a_tebibyte_of_randomness_traps() {
    let error = exceeded("host-calls", "random", json!({"bytes": 1_u64 << 40}), small_limits()).await;
    assert_eq!(error.kind, ErrorKind::Trap, "{error:#?}");
    assert!(error.message.contains("1048576"), "{error}");
}

#[tokio::test]
async fn bytes_passed_to_the_host_are_limited() {
    let limits = LimitOverrides::default().with_wall_max(Duration::from_secs(5));
    let error = exceeded("host-calls", "print_much", json!({"bytes": 17 << 20}), limits).await;
    assert_limit(&error, ErrorKind::HostCallBytes, "host_call_bytes_max", 16 << 20);
}

// attack: B12
#[tokio::test]
async fn endless_output_is_truncated_and_the_call_ends() {
    let guests = Guests::new();
    let plugin = guests.wat("host-calls").await;
    let mut conversation = Conversation::over(&[&plugin]);
    let result = conversation.call("print", json!({"times": 1_000})).await.unwrap();
    let log = result.log.unwrap();
    assert!(log.len() < (256 << 10) + 100, "{}", log.len());
    assert!(log.ends_with("more bytes were dropped]"));
    let error = conversation.error("print", json!({"times": u32::MAX})).await;
    assert_limit(&error, ErrorKind::HostCalls, "host_calls_max", 10_000);
    let log = error.log.as_deref().unwrap();
    assert!(
        log.len() > 200 << 10 && log.ends_with("more bytes were dropped]"),
        "a failed call keeps its log"
    );
}

#[tokio::test]
async fn trap_error_names_the_cause_and_the_function() {
    let error = exceeded("compute", "trap", json!({}), small_limits()).await;
    assert_eq!(error.kind, ErrorKind::Trap);
    assert_eq!(
        error.message,
        "the guest trapped: wasm `unreachable` instruction executed (in give_up)"
    );
}

// attack: C22
#[tokio::test]
async fn guest_that_exits_ends_only_its_call() {
    for (failed, status) in [(false, 0), (true, 1)] {
        let error = exceeded("host-calls", "exit", json!({"failed": failed}), small_limits()).await;
        assert_eq!(error.kind, ErrorKind::Trap);
        assert_eq!(error.message, format!("the guest exited with status {status}"));
    }
}

#[tokio::test]
async fn invented_handle_traps() {
    let error = exceeded("host-calls", "forge", json!({}), small_limits()).await;
    assert_eq!(error.kind, ErrorKind::Trap);
    assert_eq!(error.message, "the guest trapped: unknown handle index 12345");
}

// attack: B16
#[tokio::test]
async fn limit_of_zero_is_refused_and_the_largest_limit_is_accepted() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    for zero in [
        LimitOverrides::default().with_fuel_max(0),
        LimitOverrides::default().with_wall_max(Duration::ZERO),
        LimitOverrides::default().with_memory_bytes_max(0),
    ] {
        let mut conversation = Conversation::over(&[&compute]).limited(zero);
        assert_eq!(
            conversation.error("fine", json!({})).await.kind,
            ErrorKind::Configuration
        );
    }
    let most = LimitOverrides::default()
        .with_fuel_max(u64::MAX)
        .with_wall_max(Duration::MAX)
        .with_memory_bytes_max(u64::MAX);
    let mut conversation = Conversation::over(&[&compute]).limited(most);
    assert_eq!(conversation.value("fine", json!({})).await, json!(42));
    let least = LimitOverrides::default().with_fuel_max(1);
    let error = Conversation::over(&[&compute])
        .limited(least)
        .error("spin", json!({}))
        .await;
    assert_limit(&error, ErrorKind::Fuel, "fuel_max", 1);
}

// attack: B17
#[tokio::test]
async fn call_after_a_trap_runs_in_a_fresh_instance() {
    let guests = Guests::new();
    let counter = guests.wat("counter").await;
    let mut conversation = Conversation::over(&[&counter]);
    assert_eq!(conversation.error("trap", json!({})).await.kind, ErrorKind::Trap);
    for _ in 0..3 {
        assert_eq!(
            conversation.value("next", json!({})).await,
            json!(1),
            "no state survives between calls"
        );
    }
}

// attack: E2
#[tokio::test]
async fn integers_of_64_bits_survive_exactly() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let mut conversation = Conversation::over(&[&compute]);
    let exact = conversation
        .value("add", json!({"a": 9_007_199_254_740_993_i64, "b": 0}))
        .await;
    assert_eq!(exact, json!("9007199254740993"), "beyond 2^53 as decimal text");
    assert_eq!(conversation.value("add", json!({"a": "-5", "b": 2.0})).await, json!(-3));
    for wrong in [
        json!("9223372036854775808"),
        json!(1.5),
        json!("1.0"),
        json!(true),
        json!(""),
    ] {
        let error = conversation.error("add", json!({"a": wrong, "b": 0})).await;
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(error.message.starts_with("/a: "), "{error}");
    }
}
