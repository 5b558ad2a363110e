//! The shipped interceptor `redact`.

use serde_json::json;
use toolwit::registry::InterceptorSettings;
use toolwit::{ErrorKind, Toolwit};

use crate::host::{builder, call, grant};

const RELAY: &str = "courier/test:courier/courier@0.1.0#relay";

async fn host(directory: &tempfile::TempDir, grants: &str) -> Toolwit {
    let grants = format!("{grants}{}", grant("courier", "tools = [\"native#echo\"]"));
    let builder = builder(directory, &grants).await;
    let builder = builder.plugin_interceptor(InterceptorSettings::of_every_tool("redact"));
    builder.build().await.unwrap()
}

#[tokio::test]
async fn results_of_native_tools_plugins_and_nested_calls_are_redacted() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(&directory, "").await;
    let text = "write to ann@example.com, card 4111 1111 1111 1111";
    let result = call(&host, "echo", json!({"text": text})).await.unwrap();
    assert_eq!(result.for_llm, "write to [email], card [card]");
    assert_eq!(result.value, Some(json!("write to [email], card [card]")));
    let arguments = json!({"text": "ann@example.com"}).to_string();
    let relayed = json!({"tool": "native#echo", "arguments": arguments, "times": 1});
    let result = call(&host, RELAY, relayed).await.unwrap();
    assert_eq!(result.for_llm, "[email]");
    // An error of a tool is redacted too.
    let unknown = json!({"tool": "native#ann@example.com", "arguments": "{}", "times": 1});
    let error = call(&host, RELAY, unknown).await.unwrap_err();
    assert!(
        error.message.contains("native#[email]") && !error.message.contains("ann@"),
        "{error}"
    );
}

#[tokio::test]
async fn settings_select_kinds_and_words_and_a_mistake_withholds_results() {
    let directory = tempfile::tempdir().unwrap();
    let settings = grant("redact", "config = { kinds = \"card\", words = \"Project X\" }");
    let configured = host(&directory, &settings).await;
    let text = json!({"text": "Project X: ann@example.com, 4111111111111111"});
    let result = call(&configured, "echo", text.clone()).await.unwrap();
    assert_eq!(result.for_llm, "[redacted]: ann@example.com, [card]");
    let directory = tempfile::tempdir().unwrap();
    let mistaken = host(&directory, &grant("redact", "config = { kinds = \"cards\" }")).await;
    let error = call(&mistaken, "echo", text).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.message.contains("`cards` is not a kind"), "{error}");
}
