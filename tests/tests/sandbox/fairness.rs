//! Callers and conversations that share processors, places for calls and memory.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::Plugin;
use toolwit::tool::Caller;
use toolwit::{Arguments, ErrorKind, ToolContext};
use toolwit_tests::{Conversation, Guests};

/// Starts a conversation of a caller over one guest.
fn conversation_of(caller: &str, plugin: &Arc<Plugin>) -> Conversation {
    let mut conversation = Conversation::over(&[plugin]);
    conversation.context = ToolContext::new().with_extension(Caller::new(caller));
    conversation
}

fn sleep_arguments() -> Arguments {
    match json!({"seconds": 3600}) {
        Value::Object(arguments) => arguments,
        _ => unreachable!("the value is an object"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_delay_no_other_call() {
    let guests = Guests::with(|options| options.engine_limits.computing_calls_max = 1);
    let plugin = guests.wat("host-calls").await;
    let mut ann = conversation_of("ann", &plugin);
    let (sleep, context) = (ann.tool("sleep"), ann.context.clone());
    let mut sleeping: Vec<_> = (0..10).map(|_| sleep.call(sleep_arguments(), &context)).collect();
    for call in &mut sleeping {
        assert!(futures::poll!(call).is_pending());
    }
    assert_eq!(
        conversation_of("bob", &plugin).value("fine", json!({})).await,
        json!(42)
    );
    assert_eq!(
        ann.value("fine", json!({})).await,
        json!(42),
        "in the same conversation"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_fills_its_places_does_not_delay_another() {
    let guests = Guests::with(|options| options.engine_limits.calls_per_plugin_max = 4);
    let plugin = guests.wat("host-calls").await;
    let limits = LimitOverrides::default().with_wall_max(Duration::from_millis(100));
    let conversations: Vec<_> = (0..8).map(|_| conversation_of("ann", &plugin)).collect();
    let sleeping = conversations.iter().map(|conversation| {
        let (tool, context) = (conversation.tool("sleep"), conversation.context.clone());
        async move { tool.call(sleep_arguments(), &context).await }
    });
    let mut sleeping: Vec<_> = sleeping.map(Box::pin).collect();
    for call in &mut sleeping {
        assert!(futures::poll!(call).is_pending());
    }
    let mut ann = conversation_of("ann", &plugin).limited(limits);
    assert_eq!(ann.error("fine", json!({})).await.kind, ErrorKind::Busy);
    let mut bob = conversation_of("bob", &plugin);
    assert_eq!(bob.value("fine", json!({})).await, json!(42));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_compute_delay_another_caller_by_ticks() {
    let guests = Guests::with(|options| options.engine_limits.computing_calls_max = 1);
    let plugin = guests.wat("compute").await;
    let limits = LimitOverrides::default().with_fuel_max(200_000_000);
    let ann = conversation_of("ann", &plugin).limited(limits);
    let (spin, context) = (ann.tool("spin"), ann.context.clone());
    let loops = tokio::spawn(async move { join_all((0..8).map(|_| spin.call(Arguments::new(), &context))).await });
    let mut bob = conversation_of("bob", &plugin);
    let mut served = 0;
    while !loops.is_finished() {
        assert_eq!(bob.value("fine", json!({})).await, json!(42));
        served += 1;
    }
    for outcome in loops.await.unwrap() {
        assert_eq!(outcome.unwrap_err().report().kind, ErrorKind::Fuel);
    }
    assert!(served > 8, "{served} calls were served while eight loops ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_calls_that_wait_is_limited_together() {
    // A guest has two pages of memory, so four guests fit.
    let guests = Guests::with(|options| options.engine_limits.guest_memory_bytes_max = 8 << 16);
    let plugin = guests.wat("host-calls").await;
    let mut ann = conversation_of("ann", &plugin);
    let (sleep, context) = (ann.tool("sleep"), ann.context.clone());
    let mut sleeping: Vec<_> = (0..2).map(|_| sleep.call(sleep_arguments(), &context)).collect();
    for call in &mut sleeping {
        assert!(futures::poll!(call).is_pending());
    }
    let error = ann.error("fine", json!({})).await;
    assert_eq!(error.kind, ErrorKind::Busy);
    assert_eq!(error.limit.as_ref().unwrap().limit, "guest_memory_bytes_max");
    assert_eq!(
        conversation_of("bob", &plugin).value("fine", json!({})).await,
        json!(42)
    );
    drop(sleeping);
    assert_eq!(ann.value("fine", json!({})).await, json!(42));
}
