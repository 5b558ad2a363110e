//! Results of every size and shape.

use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::{Error, ErrorKind};
use toolwit_tests::{Conversation, Guests};

async fn conversation() -> Conversation {
    let guests = Guests::new();
    Conversation::over(&[&guests.wat("results").await])
}

fn exceeded_limit(error: &Error) -> (&str, u64, u64) {
    let limit = error.limit.as_ref().expect("the error names the limit");
    (limit.limit, limit.max, limit.used)
}

// attack: B4
#[tokio::test]
async fn result_of_exactly_the_limit_is_returned_and_one_byte_more_is_refused() {
    let mut conversation = conversation()
        .await
        .limited(LimitOverrides::default().with_result_bytes_max(100_000));
    let result = conversation.call("text", json!({"bytes": 100_000})).await.unwrap();
    assert_eq!(result.for_llm.len(), 100_000);
    let error = conversation.error("text", json!({"bytes": 100_001})).await;
    assert_eq!(error.kind, ErrorKind::ResultBytes);
    assert_eq!(exceeded_limit(&error), ("result_bytes_max", 100_000, 100_001));
}

// attack: B4
#[tokio::test]
async fn result_of_two_hundred_megabytes_is_refused_before_it_is_copied() {
    let mut conversation = conversation().await;
    let error = conversation.error("text", json!({"bytes": 200 << 20})).await;
    assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:#?}");
    assert_eq!(error.message, "the result has more than 1 MiB");
    let error = conversation.error("claim", json!({"bytes": 200 << 20})).await;
    assert_eq!(error.kind, ErrorKind::Trap, "the guest has no such bytes: {error:#?}");
}

// attack: B4
#[tokio::test]
async fn list_counts_with_its_encoded_size() {
    let mut conversation = conversation().await;
    let result = conversation.call("booleans", json!({"count": 150_000})).await.unwrap();
    assert_eq!(result.for_llm.len(), "false,".len() * 150_000 + 1);
    let error = conversation.error("booleans", json!({"count": 2_000_000})).await;
    assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:#?}");
}

#[tokio::test]
async fn invalid_value_of_a_type_traps() {
    let mut conversation = conversation().await;
    for tool in ["not_utf8", "not_a_char", "misaligned"] {
        let error = conversation.error(tool, json!({})).await;
        assert_eq!(error.kind, ErrorKind::Trap, "{tool}: {error:#?}");
    }
}
