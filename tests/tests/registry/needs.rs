//! Keys that a plugin requires.

use std::fs;

use serde_json::json;
use toolwit::grants::{GrantRules, GrantScope, GrantedVersion, SecretPlacement, SecretRule};
use toolwit::model::ScriptedModel;
use toolwit::sandbox::{NewGrant, Scope};
use toolwit::store::HealthState;
use toolwit::{Arguments, ErrorKind, Phase, ToolContext, ToolError, ToolResult, ToolwitBuilder};

use crate::place::{Place, adder};

const MANIFEST: &str = r#"
[[environment]]
name = "weather-key"
description = "of weather.example, free for private use"
required = true

[[environment]]
name = "LANG"
"#;

const GRANT: &str = r#"
version = 1
[[grant]]
plugin = "weather"
any-version = true
secrets = [{ name = "weather-key", from = "conversation", host = "api.weather.example", bearer = true }]
"#;

/// Returns a component that imports the network, so that a secret can be granted to it.
fn weather() -> String {
    let text = adder(1);
    text.replacen(
        "(component",
        "(component (import \"wasi:http/outgoing-handler@0.2.0\" (instance))",
        1,
    )
}

// accept: 118, accept: 123, accept: 130, accept: 136, accept: 137
#[tokio::test]
async fn missing_key_is_reported_before_the_call_and_does_not_affect_health() {
    let place = Place::new();
    place.put_bytes("weather.toml", MANIFEST.as_bytes());
    place.put("weather", &weather());
    let own = tempfile::tempdir().unwrap();
    let grants = own.path().join("grants.toml");
    fs::write(&grants, "version = 1\n").unwrap();
    let host = place.host().grants(&grants).build().await.unwrap();
    let registry = host.registry();
    let tool = registry.tool("weather#version", &Scope::new()).unwrap();

    let bare = ToolContext::new();
    let error = tool.call(Arguments::new(), &bare).await.unwrap_err();
    let report = error.report();
    assert_eq!((report.kind, report.phase), (ErrorKind::MissingKey, Phase::Validate));
    let document = serde_json::to_value(report).unwrap();
    assert_eq!(document["tool"], "weather#version");
    assert_eq!(
        document["message"],
        "it needs `weather-key` (of weather.example, free for private use), which is not set"
    );
    assert!(
        document["suggestion"]
            .as_str()
            .unwrap()
            .contains("grants it to `weather`"),
        "{document}"
    );

    // The operator grants the secret; each conversation provides its own value.
    fs::write(&grants, GRANT).unwrap();
    let conversation = ToolContext::new().with("weather-key", "the-key-of-one-user");
    assert_eq!(tool.call(Arguments::new(), &conversation).await.unwrap().for_llm, "1");
    let other = tool.call(Arguments::new(), &bare).await.unwrap_err();
    assert_eq!(
        other.report().kind,
        ErrorKind::MissingKey,
        "another conversation has no key, even if the tool is already loaded"
    );
    assert!(!other.report().to_string().contains("the-key"));
    let merged = conversation.merged_with(&ToolContext::new().with("tenant", "acme"));
    assert!(
        tool.call(Arguments::new(), &merged).await.is_ok(),
        "context values are merged by key"
    );

    tool.call(Arguments::from_iter([("a".to_owned(), json!(1))]), &conversation)
        .await
        .unwrap_err();
    for health in registry.store().health().unwrap().values() {
        assert_eq!(health.execution, HealthState::Healthy, "{health:?}");
    }
}

// accept: 115, accept: 137
#[tokio::test]
async fn model_is_informed_of_a_missing_key_and_can_request_it() {
    let place = Place::new();
    place.put_bytes("weather.toml", MANIFEST.as_bytes());
    place.put("weather", &weather());
    let host = place.host().build().await.unwrap();
    let model = std::sync::Arc::new(
        ScriptedModel::new()
            .call("version", json!({}))
            .answer("Please give me the key of weather.example."),
    );
    let mut conversation = host.conversation().model(model.clone()).build().unwrap();
    let outcome = conversation.run("What is the weather?").await.unwrap();
    assert_eq!(
        outcome.text(),
        "Please give me the key of weather.example.",
        "the run continues"
    );
    let result = model.requests()[1].messages.last().unwrap().content().to_owned();
    for part in ["missing-key", "weather-key", "ask the user"] {
        assert!(result.contains(part), "{result}");
    }
}

#[tokio::test]
async fn application_grants_and_provides_a_key_in_code() {
    let place = Place::new();
    place.put_bytes("weather.toml", MANIFEST.as_bytes());
    place.put("weather", &weather());
    let grant = || NewGrant {
        plugin: "weather".to_owned(),
        version: GrantedVersion::Any,
        scope: GrantScope::Always,
        rules: GrantRules {
            secrets: vec![SecretRule::sent_to("weather-key", "api.weather.example", SecretPlacement::Bearer).unwrap()],
            ..GrantRules::default()
        },
    };
    let call = async |builder: ToolwitBuilder| {
        let host = builder.build().await.unwrap();
        let tool = host.registry().tool("weather#version", &Scope::new()).unwrap();
        tool.call(Arguments::new(), &ToolContext::new()).await
    };
    let kind = |outcome: Result<ToolResult, ToolError>| outcome.unwrap_err().report().kind;
    assert_eq!(kind(call(place.host()).await), ErrorKind::MissingKey);
    assert_eq!(
        kind(call(place.host().grant(grant())).await),
        ErrorKind::MissingKey,
        "a grant without the key"
    );
    assert_eq!(
        kind(call(place.host().secret("weather-key", "the-key-of-the-application")).await),
        ErrorKind::MissingKey,
        "a key without the grant"
    );
    let both = place
        .host()
        .grant(grant())
        .secret("weather-key", "the-key-of-the-application");
    assert_eq!(call(both).await.unwrap().for_llm, "1");
    let short = place.host().secret("weather-key", "short").build().await;
    assert_eq!(short.err().unwrap().kind, ErrorKind::Configuration);
}
