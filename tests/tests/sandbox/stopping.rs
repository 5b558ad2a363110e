//! A guest is stopped at its deadline and when the caller has enough, whether it computes or waits in the host.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolwit::limits::LimitRequest;
use toolwit::{Arguments, ErrorKind, ToolContext};
use toolwit_tests::{Conversation, Guests};

const WALL: Duration = Duration::from_millis(400);

/// Enough fuel that time runs out first.
fn timed() -> LimitRequest {
    LimitRequest::none().wall(WALL).fuel(u64::MAX)
}

// attack: B1, attack: B8
#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_stops_a_guest_that_computes_and_one_that_sleeps() {
    let guests = Guests::with(|options| options.operator_limits = LimitRequest::none().fuel(u64::MAX));
    for (guest, tool, arguments) in [
        ("compute", "spin", json!({})),
        ("host-calls", "sleep", json!({"seconds": 3_600})),
    ] {
        let plugin = guests.wat(guest).await;
        let mut conversation = Conversation::over(&[&plugin]).bounded(timed());
        let started = Instant::now();
        let error = conversation.error(tool, arguments).await;
        let took = started.elapsed();
        assert_eq!(error.kind, ErrorKind::Timeout, "{tool}: {error}");
        assert!(took >= WALL && took < WALL * 5 / 4, "{tool} took {took:?}");
    }
}

// attack: B14
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_at_once_and_says_that_it_may_have_taken_effect() {
    let guests = Guests::new();
    for (guest, tool, arguments) in [
        ("compute", "spin", Arguments::new()),
        (
            "host-calls",
            "sleep",
            json!({"seconds": 3_600}).as_object().unwrap().clone(),
        ),
    ] {
        let plugin = guests.wat(guest).await;
        let tool = Conversation::over(&[&plugin]).tool(tool);
        let cancel = CancellationToken::new();
        let context = ToolContext::new().with_cancel(cancel.clone());
        let started = Instant::now();
        let (answer, ()) = tokio::join!(tool.call(arguments, &context), async { cancel.cancel() });
        let error = toolwit::Error::from(answer.unwrap_err());
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

// attack: B14
#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_in_the_middle_frees_its_place() {
    let guests = Guests::with(|options| options.engine_limits.calls_per_plugin_max = 1);
    let (compute, host_calls) = (guests.wat("compute").await, guests.wat("host-calls").await);
    let mut conversation = Conversation::over(&[&compute, &host_calls]);
    for (tool, arguments) in [("spin", json!({})), ("sleep", json!({"seconds": 3_600}))] {
        let tool = conversation.tool(tool);
        let (arguments, context) = (arguments.as_object().unwrap().clone(), ToolContext::new());
        let called = tool.call(arguments, &context);
        assert!(tokio::time::timeout(Duration::from_millis(30), called).await.is_err());
    }
    let sum = conversation.value("add", json!({"a": 1, "b": 1})).await;
    assert_eq!(sum, json!(2), "the one place that there is was freed");
    conversation.value("look_at_the_clock", json!({"times": 1})).await;
}

// attack: B6, attack: I2
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_loops_all_end_while_others_work() {
    let guests = Guests::new();
    let (hostile, harmless) = (guests.wat("compute").await, guests.wat("results").await);
    let bound = LimitRequest::none().fuel(1_000_000);
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let mut conversation = Conversation::over(&[&hostile]).bounded(bound.clone());
        loops.spawn(async move { conversation.error("spin", json!({})).await.kind });
    }
    let mut conversation = Conversation::over(&[&harmless]);
    for _ in 0..20 {
        assert_eq!(conversation.value("text", json!({"bytes": 3})).await, json!("xxx"));
    }
    while let Some(ended) = loops.join_next().await {
        assert!(ended.unwrap().is_limit());
    }
}

#[tokio::test]
async fn bounds_under_which_nothing_could_run_are_refused() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let mut conversation = Conversation::over(&[&compute]).bounded(LimitRequest::none().fuel(0));
    let error = conversation.error("add", json!({"a": 1, "b": 1})).await;
    assert_eq!(error.kind, ErrorKind::Configuration);
}
