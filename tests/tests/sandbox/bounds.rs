//! Every bound has an error of its own, which tells the limit and the use, and the host goes on.

use std::time::Duration;

use serde_json::{Value, json};
use toolwit::limits::LimitRequest;
use toolwit::{Error, ErrorKind};
use toolwit_tests::{Conversation, Guests};

/// Small bounds, so that meeting them takes no time.
fn small() -> LimitRequest {
    LimitRequest::none()
        .fuel(50_000_000)
        .wall(Duration::from_secs(20))
        .memory_bytes(8 << 20)
}

/// Calls a guest that must be stopped, shows that the next call works, and returns why it was stopped.
async fn stopped(guest: &str, tool: &str, arguments: Value) -> Error {
    let guests = Guests::new();
    let (hostile, harmless) = (guests.wat(guest).await, guests.wat("compute").await);
    let error = Conversation::over(&[&hostile])
        .bounded(small())
        .error(tool, arguments)
        .await;
    let sum = Conversation::over(&[&harmless])
        .value("add", json!({"a": 40, "b": 2}))
        .await;
    assert_eq!(sum, json!(42), "the host lives");
    error
}

fn met(error: &Error) -> (&'static str, u64, bool) {
    let limit = error
        .limit
        .as_ref()
        .unwrap_or_else(|| panic!("{error:?} names no limit"));
    (limit.limit, limit.max, limit.used >= limit.max)
}

// attack: B1
#[tokio::test]
async fn a_loop_without_end_burns_its_fuel() {
    let error = stopped("compute", "spin", json!({})).await;
    assert_eq!(error.kind, ErrorKind::Fuel);
    assert_eq!(met(&error), ("fuel_max", 50_000_000, true));
}

// attack: B15
#[tokio::test]
async fn copying_memory_for_ever_burns_fuel_too() {
    assert_eq!(stopped("compute", "copy", json!({})).await.kind, ErrorKind::Fuel);
}

// attack: B3
#[tokio::test]
async fn recursion_without_end_exhausts_the_stack_and_nothing_else() {
    let error = stopped("compute", "recurse", json!({})).await;
    assert_eq!(error.kind, ErrorKind::Stack);
    assert_eq!(met(&error), ("stack_bytes_max", 1 << 20, true));
}

// attack: B2, attack: B7
#[tokio::test]
async fn memory_is_bounded_over_all_memories_of_an_instance() {
    let error = stopped("compute", "fill_both", json!({})).await;
    assert_eq!(error.kind, ErrorKind::Memory);
    assert_eq!(met(&error), ("memory_bytes_max", 8 << 20, true));
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let pages = Conversation::over(&[&compute])
        .bounded(small())
        .value("fill", json!({}))
        .await;
    assert_eq!(
        pages,
        json!(126),
        "a guest that can do without more is told so and goes on"
    );
}

// attack: B7
#[tokio::test]
async fn table_elements_are_bounded() {
    let error = stopped("compute", "fill_table", json!({})).await;
    assert_eq!(error.kind, ErrorKind::TableElements);
    assert_eq!(met(&error), ("table_elements_max", 100_000, true));
}

// attack: B4
#[tokio::test]
async fn a_result_over_its_bound_is_an_error_and_one_at_it_is_not() {
    let guests = Guests::new();
    let results = guests.wat("results").await;
    let mut conversation = Conversation::over(&[&results]).bounded(LimitRequest::none().memory_bytes(64 << 20));
    let text = conversation.value("text", json!({"bytes": 1 << 20})).await;
    assert_eq!(text.as_str().map(str::len), Some(1 << 20));
    for (tool, arguments) in [
        ("text", json!({"bytes": (1 << 20) + 1})),
        ("text", json!({"bytes": 50 << 20})),
        ("booleans", json!({"count": 600_000})),
        ("booleans", json!({"count": 30_000_000})),
    ] {
        let error = conversation.error(tool, arguments.clone()).await;
        assert_eq!(error.kind, ErrorKind::ResultBytes, "{tool} {arguments}");
        assert_eq!(met(&error), ("result_bytes_max", 1 << 20, true));
    }
    let error = conversation.error("claim", json!({"bytes": 200 << 20})).await;
    assert_eq!(error.kind, ErrorKind::Trap, "what is not there is not copied");
}

#[tokio::test]
async fn results_that_break_the_canonical_abi_are_traps() {
    for tool in ["not_utf8", "not_a_char", "misaligned"] {
        assert_eq!(
            stopped("results", tool, json!({})).await.kind,
            ErrorKind::Trap,
            "{tool}"
        );
    }
}

#[tokio::test]
async fn calls_into_the_host_are_counted() {
    let error = stopped("host-calls", "flood", json!({})).await;
    assert_eq!(error.kind, ErrorKind::HostCalls);
    assert_eq!(met(&error), ("host_calls_max", 10_000, true));
    let guests = Guests::new();
    let host_calls = guests.wat("host-calls").await;
    let times = json!({"times": 10_000});
    Conversation::over(&[&host_calls])
        .value("look_at_the_clock", times)
        .await;
}

// attack: B9
#[tokio::test]
async fn random_bytes_are_bounded_before_any_are_made() {
    for bytes in [(1_u64 << 20) + 1, 1 << 40] {
        let error = stopped("host-calls", "random", json!({"bytes": bytes})).await;
        assert_eq!(error.kind, ErrorKind::Trap);
    }
    let guests = Guests::new();
    let host_calls = guests.wat("host-calls").await;
    let mut conversation = Conversation::over(&[&host_calls]);
    assert_eq!(
        conversation.value("random", json!({"bytes": 1 << 20})).await,
        json!(1 << 20)
    );
}

// attack: B10
#[tokio::test]
async fn resources_are_bounded_whoever_made_them() {
    for (guest, tool) in [("host-calls", "hoard"), ("token", "hoard")] {
        let error = stopped(guest, tool, json!({})).await;
        assert_eq!(error.kind, ErrorKind::Resources, "{guest}");
        assert_eq!(met(&error), ("resources_max", 4_096, true));
    }
}

// attack: B12
#[tokio::test]
async fn output_beyond_its_bound_is_dropped_and_the_call_goes_on() {
    let guests = Guests::new();
    let host_calls = guests.wat("host-calls").await;
    let result = Conversation::over(&[&host_calls])
        .call("print", json!({"times": 2_000}))
        .await
        .unwrap();
    let log = result.log.unwrap();
    assert!(log.len() < (256 << 10) + 100 && log.ends_with("more bytes were dropped]"));
}

// attack: C22
#[tokio::test]
async fn a_guest_that_exits_ends_its_own_call_only() {
    for failed in [true, false] {
        let error = stopped("host-calls", "exit", json!({"failed": failed})).await;
        assert_eq!(error.kind, ErrorKind::Trap);
        assert!(error.message.contains("exit status"), "{error}");
    }
}

// attack: B17
#[tokio::test]
async fn a_call_after_a_trap_runs_in_a_fresh_instance() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let mut conversation = Conversation::over(&[&compute]);
    assert_eq!(conversation.error("trap", json!({})).await.kind, ErrorKind::Trap);
    for _ in 0..3 {
        assert_eq!(
            conversation.value("count", json!({})).await,
            json!(1),
            "nothing is kept between calls"
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
