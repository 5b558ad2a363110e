//! Resources without an id: numbered, consumed, gone, and never confused with each other.

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;
use toolwit_tests::{Conversation, Guests};

#[tokio::test]
async fn entities_without_an_id_are_numbered_and_share_their_tools() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    let first = conversation.value("make", json!({})).await;
    assert_eq!(first["id"], "1");
    assert_eq!(
        first["available_tools"],
        json!(["token_bump", "token_explode", "token_spin"])
    );
    let tools = conversation.tools.len();
    conversation.value("many", json!({"count": 500})).await;
    assert_eq!(
        conversation.tools.len(),
        tools,
        "five hundred entities need as many tools as one"
    );
    for expected in [1, 2] {
        assert_eq!(
            conversation.value("token_bump", json!({"token_id": "1"})).await,
            json!(expected)
        );
    }
    assert_eq!(
        conversation.value("token_bump", json!({"token_id": "501"})).await,
        json!(1)
    );
    let sum = conversation.value("sum", json!({"first": "1", "second": "501"})).await;
    assert_eq!(sum, json!(3), "handles of different calls work together");
}

#[tokio::test]
async fn consumed_and_unknown_entities_are_refused_as_arguments() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let (mut mine, mut yours) = (Conversation::over(&[&token]), Conversation::over(&[&token]));
    mine.value("make", json!({})).await;
    yours.value("many", json!({"count": 2})).await;
    for forged in ["2", "0", "-1", "", "1 ", "4294967296"] {
        let error = mine.error("burn", json!({"token": forged})).await;
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{forged:?}");
    }
    mine.value("burn", json!({"token": "1"})).await;
    assert_eq!(mine.value("dropped", json!({})).await, json!(1));
    let gone = mine.error("burn", json!({"token": "1"})).await;
    assert!(
        gone.message.contains("is gone") && gone.message.contains("`make`"),
        "{gone}"
    );
    yours.value("burn", json!({"token": "1"})).await;
}

#[tokio::test]
async fn error_value_can_contain_an_entity() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]);
    let failed = conversation.call("fail", json!({})).await.unwrap();
    assert!(failed.is_error());
    assert_eq!(
        conversation.value("token_bump", json!({"token_id": "1"})).await,
        json!(1)
    );
}

#[tokio::test]
async fn entities_are_gone_after_a_trap_and_new_ones_can_be_created() {
    let guests = Guests::new();
    let token = guests.wat("token").await;
    let mut conversation = Conversation::over(&[&token]).limited(LimitOverrides::default().with_fuel_max(1_000_000));
    for (lethal, kind) in [("token_explode", ErrorKind::Trap), ("token_spin", ErrorKind::Fuel)] {
        let token = conversation.value("make", json!({})).await;
        let id = json!({"token_id": token["id"]});
        assert_eq!(conversation.error(lethal, id.clone()).await.kind, kind);
        let gone = conversation.error("token_bump", id).await;
        assert_eq!(gone.kind, ErrorKind::EntityGone);
        assert!(
            gone.suggestion.as_ref().is_some_and(|hint| hint.contains("`make`")),
            "{gone:?}"
        );
    }
}

#[tokio::test]
async fn least_recently_used_session_is_evicted() {
    let guests = Guests::with(|options| options.engine_limits.sessions_max = 2);
    let token = guests.wat("token").await;
    let mut conversations = [(); 3].map(|()| Conversation::over(&[&token]));
    for conversation in &mut conversations {
        conversation.value("make", json!({})).await;
    }
    let evicted = conversations[0].error("token_bump", json!({"token_id": "1"})).await;
    assert_eq!(evicted.kind, ErrorKind::EntityGone);
    for conversation in &mut conversations[1..] {
        assert_eq!(
            conversation.value("token_bump", json!({"token_id": "1"})).await,
            json!(1)
        );
    }
}
