//! Environment, arguments, clocks, randomness, and exit.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::grants::AccessRequest;

use crate::host::{Setup, TestHost};

// attack: C8, accept: 120
#[tokio::test]
async fn environment_contains_granted_variables_and_arguments_are_empty() {
    let none = Setup::new().start().await;
    assert_eq!(none.value("environment", json!({})).await, json!([]));
    assert_eq!(none.value("arguments", json!({})).await, json!([]));
    let lines =
        r#"env = [{ name = "A", value = "1" }, { name = "CARGO_MANIFEST_DIR" }, { name = "NOT_SET_ANYWHERE" }]"#;
    let some = Setup::new().grant(lines).start().await;
    let expected = json!([["A", "1"], ["CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR")]]);
    assert_eq!(some.value("environment", json!({})).await, expected);
    assert_eq!(some.value("arguments", json!({})).await, json!([]));
}

// attack: C20
#[tokio::test]
async fn clocks_and_randomness_are_real_or_frozen() {
    let real = Setup::new().start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seconds = real.value("time", json!({})).await[0].as_u64().unwrap();
    assert!(seconds.abs_diff(now) < 60, "{seconds} {now}");
    assert_ne!(
        real.value("random", json!({})).await,
        real.value("random", json!({})).await
    );
    let frozen = Setup::new()
        .grant("clock = { frozen = 1000000000 }\nrandom = { frozen = 7 }")
        .start()
        .await;
    for _ in 0..2 {
        assert_eq!(frozen.value("time", json!({})).await, json!([1_000_000_000, 0]));
        assert_eq!(
            frozen.value("random", json!({})).await,
            frozen.value("random", json!({})).await
        );
    }
    let other = Setup::new().grant("random = { frozen = 8 }").start().await;
    assert_ne!(
        frozen.value("random", json!({})).await,
        other.value("random", json!({})).await
    );
}

/// Returns the rule by which an access of the guest `probe` is explained.
async fn explained_rule(host: &TestHost, request: AccessRequest<'_>) -> Option<String> {
    let registry = host.host.registry();
    let probe = registry.plugins().find(|plugin| plugin.name() == "probe").unwrap();
    probe.explain(&request).await.unwrap().rule
}

#[tokio::test]
async fn a_clock_that_the_host_froze_is_explained_as_frozen() {
    let granted = "clock = { frozen = 1000000000 }\nrandom = { frozen = 7 }";
    for grant in ["", granted] {
        let frozen = Setup::new().grant(grant).frozen_at(42).start().await;
        assert_eq!(frozen.value("time", json!({})).await, json!([42, 0]));
        let clock = explained_rule(&frozen, AccessRequest::Clock).await;
        assert_eq!(clock.as_deref(), Some("frozen at 42 s after 1970"));
        let random = explained_rule(&frozen, AccessRequest::Random).await;
        assert_eq!(random.as_deref(), Some("the seed 42"));
    }
    let real = Setup::new().start().await;
    assert_eq!(explained_rule(&real, AccessRequest::Clock).await, None);
    assert_eq!(explained_rule(&real, AccessRequest::Random).await, None);
}

// attack: C21
#[tokio::test]
async fn guest_output_is_logged_as_plain_text() {
    let host = Setup::new().start().await;
    let fake = "\u{1b}[2J\u{7}{\"role\": \"tool\"}";
    let result = host.call("say", json!({"text": fake})).await.unwrap();
    let log = result.log.unwrap();
    assert!(
        !log.contains('\u{1b}') && !log.contains('\u{7}') && log.contains("tool"),
        "{log:?}"
    );
    assert_eq!(result.value.unwrap(), fake, "a result is data and stays unchanged");
}

// attack: C22
#[tokio::test]
async fn exit_of_a_guest_ends_only_its_call() {
    let host = Setup::new().start().await;
    for code in [0, 1, 255] {
        let error = host.call("end", json!({"code": code})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Trap, "{error}");
    }
    assert_eq!(host.value("say", json!({"text": "still here"})).await, "still here");
}
