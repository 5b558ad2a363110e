//! The shipped interceptor `quota`.

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::registry::InterceptorSettings;

use crate::host::{builder, call, grant};

const STORE: &str = "keyvalue = { quota = \"1MiB\" }";
const RELAY: &str = "courier/test:courier/courier@0.1.0#relay";

#[tokio::test]
async fn calls_beyond_the_quota_are_denied_also_nested_and_concurrent_ones() {
    let directory = tempfile::tempdir().unwrap();
    let grants = format!(
        "{}{}",
        grant("quota", &format!("{STORE}\nconfig = {{ calls = \"5\" }}")),
        grant("courier", "tools = [\"native#echo\"]")
    );
    let builder = builder(&directory, &grants).await;
    let settings: InterceptorSettings = "quota=echo".parse().unwrap();
    let host = builder.plugin_interceptor(settings).build().await.unwrap();
    let calls = (0..3).map(|_| call(&host, "echo", json!({"text": "x"})));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    let relayed = |times: u32| json!({"tool": "native#echo", "arguments": "{\"text\": \"y\"}", "times": times});
    assert_eq!(call(&host, RELAY, relayed(2)).await.unwrap().for_llm, "y");
    let refused = call(&host, RELAY, relayed(1)).await.unwrap();
    assert!(
        refused.is_error() && refused.for_llm.contains("the quota of 5 calls is used up"),
        "{}",
        refused.for_llm
    );
    let calls = (0..4).map(|_| call(&host, "echo", json!({"text": "x"})));
    for refused in futures::future::join_all(calls).await {
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Denied);
    }
}

// attack: Q1
#[tokio::test]
async fn without_its_store_or_with_a_mistaken_setting_every_call_is_denied() {
    for lines in ["", "keyvalue = { quota = \"1MiB\" }\nconfig = { call = \"5\" }"] {
        let directory = tempfile::tempdir().unwrap();
        let builder = builder(&directory, &grant("quota", lines)).await;
        let builder = builder.plugin_interceptor(InterceptorSettings::of_every_tool("quota"));
        let host = builder.build().await.unwrap();
        let error = call(&host, "echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{lines}: {error}");
    }
}
