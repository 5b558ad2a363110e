//! Calls that are cancelled, dropped or timed out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::Plugin;
use toolwit::{Error, ErrorKind, ToolContext};
use toolwit_tests::{Conversation, Guests};

/// Calls that never end: in the guest, in the host, in a fresh instance, in a session instance.
async fn endless_calls(guests: &Guests) -> Vec<(Arc<Plugin>, &'static str, Value)> {
    let token = guests.wat("token").await;
    vec![
        (guests.wat("compute").await, "spin", json!({})),
        (guests.wat("host-calls").await, "sleep", json!({"seconds": 3600})),
        (token, "spin", json!({})),
    ]
}

/// The way in which a caller ends a call.
enum EndOfCall {
    Cancel,
    Drop,
}

/// Calls a tool, and ends the call while its guest runs.
async fn end_call(conversation: &Conversation, tool: &str, arguments: &Value, end: EndOfCall) -> Option<Error> {
    let cancel = CancellationToken::new();
    let context = ToolContext::new().with_cancel_token(cancel.clone());
    let tool = conversation.tool(tool);
    let mut call = tool.call(arguments.as_object().cloned().unwrap(), &context);
    // The guest runs within the first poll, until the first tick or until it waits in the host.
    assert!(futures::poll!(&mut call).is_pending());
    match end {
        EndOfCall::Drop => None,
        EndOfCall::Cancel => {
            cancel.cancel();
            Some(call.await.expect_err("a cancelled call returns an error").into())
        }
    }
}

// attack: B14
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_ends_at_once_and_the_next_one_works() {
    let guests = Guests::new();
    for (plugin, tool, arguments) in endless_calls(&guests).await {
        let mut conversation = Conversation::over(&[&plugin]);
        let error = end_call(&conversation, tool, &arguments, EndOfCall::Cancel)
            .await
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Cancelled, "{error:#?}");
        assert!(error.suggestion.as_deref().unwrap().contains("may have taken effect"));
        assert_eq!(conversation.value("fine", json!({})).await, json!(42));
    }
}

// attack: B14
#[tokio::test(flavor = "multi_thread")]
async fn dropped_call_frees_its_permit() {
    let guests = Guests::with(|options| options.engine_limits.calls_per_plugin_max = 1);
    for (plugin, tool, arguments) in endless_calls(&guests).await {
        let mut conversation = Conversation::over(&[&plugin]);
        end_call(&conversation, tool, &arguments, EndOfCall::Drop).await;
        assert_eq!(conversation.value("fine", json!({})).await, json!(42));
    }
}

// attack: B14, attack: B17
#[tokio::test(flavor = "multi_thread")]
async fn entities_of_an_abandoned_instance_are_reported_as_gone() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    conversation.value("make", json!({})).await;
    end_call(&conversation, "token_spin", &json!({"token_id": "1"}), EndOfCall::Drop).await;
    let error = conversation.error("token_bump", json!({"token_id": "1"})).await;
    assert_eq!(error.kind, ErrorKind::EntityGone);
    assert_eq!(
        error.message,
        "the token `1` is gone: an earlier call was abandoned while it ran"
    );
    let token = conversation.value("make", json!({})).await;
    assert_eq!(token["id"], "2", "a number is never reused for another entity");
}

#[tokio::test]
async fn call_cancelled_before_it_starts_executes_nothing() {
    let guests = Guests::new();
    let (compute, token) = (guests.wat("compute").await, guests.wat("token").await);
    let mut conversation = Conversation::over(&[&compute, &token]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let context = std::mem::replace(&mut conversation.context, ToolContext::new().with_cancel_token(cancel));
    for tool in ["fine", "make"] {
        let error = conversation.error(tool, json!({})).await;
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(error.suggestion.is_none(), "the call cannot have taken effect");
    }
    conversation.context = context;
    assert_eq!(conversation.value("make", json!({})).await["id"], "1");
}

// attack: B17
#[tokio::test]
async fn trapped_instance_is_never_entered_again() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    conversation.value("make", json!({})).await;
    assert_eq!(
        conversation.value("token_bump", json!({"token_id": "1"})).await,
        json!(1)
    );
    let error = conversation.error("token_explode", json!({"token_id": "1"})).await;
    assert_eq!(error.kind, ErrorKind::Trap);
    let error = conversation.error("token_bump", json!({"token_id": "1"})).await;
    assert_eq!(error.kind, ErrorKind::EntityGone);
    assert!(
        error.message.starts_with("the token `1` is gone: the guest trapped: "),
        "{error}"
    );
    assert_eq!(error.suggestion.as_deref(), Some("get one with `make` or `many`"));
    let again = conversation.value("make", json!({})).await;
    assert_eq!(
        conversation.value("token_bump", json!({"token_id": again["id"]})).await,
        json!(1)
    );
}

#[tokio::test]
async fn session_survives_an_oversized_result() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    conversation.value("make", json!({})).await;
    for bytes in [2 << 20, 100 << 20] {
        let error = conversation.error("text", json!({"bytes": bytes})).await;
        assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:#?}");
        let bumped = conversation.call("token_bump", json!({"token_id": "1"})).await;
        assert!(bumped.is_ok(), "after {bytes} bytes: {bumped:?}");
    }
}

// attack: B1
#[tokio::test(flavor = "multi_thread")]
async fn endless_method_is_stopped_at_its_deadline() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let limits = LimitOverrides::default().with_wall_max(Duration::from_millis(100));
    let mut conversation = Conversation::over(&[&token]).limited(limits);
    conversation.value("make", json!({})).await;
    let error = conversation.error("token_spin", json!({"token_id": "1"})).await;
    assert_eq!(error.kind, ErrorKind::Timeout);
}
