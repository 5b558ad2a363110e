//! An interceptor that fails, and one that changes calls.

use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use toolwit::limits::LimitOverrides;
use toolwit::registry::InterceptorSettings;
use toolwit::{Error, ErrorKind, ScriptedModel, ToolContext, ToolResult, Toolwit};

use crate::host::{builder, call, grant, object};

const RELAY: &str = "courier/test:courier/courier@0.1.0#relay";

async fn host(directory: &TempDir, before: &str, after: &str) -> Toolwit {
    host_with(directory, before, after, "meddler").await
}

async fn host_with(directory: &TempDir, before: &str, after: &str, interceptor: &str) -> Toolwit {
    let grants = format!(
        "{}{}",
        grant(
            "meddler",
            &format!(
                "config = {{ before = \"{before}\", after = \"{after}\" }}\ntools = [\"native#echo\"]\ncontext = [\"tenant\"]"
            )
        ),
        grant("courier", "tools = [\"native#echo\"]")
    );
    let builder = builder(directory, &grants).await;
    let builder = builder.plugin_interceptor(interceptor.parse().unwrap());
    builder.build().await.unwrap()
}

async fn call_through_meddler(before: &str, after: &str) -> Result<ToolResult, Error> {
    let directory = tempfile::tempdir().unwrap();
    let host = host(&directory, before, after).await;
    call(&host, "echo", json!({"text": "a secret"})).await
}

// attack: Q1
#[tokio::test]
async fn an_interceptor_that_fails_lets_nothing_through() {
    for before in ["trap", "grow", "garbage"] {
        let error = call_through_meddler(before, "").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{before}: {error:?}");
        assert_eq!(
            error.message,
            "the call did not run, because the interceptor `meddler` failed"
        );
    }
    for after in ["trap", "garbage", "flood"] {
        let error = call_through_meddler("", after).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{after}: {error:?}");
        let read_by_model = serde_json::to_string(&error).unwrap();
        assert!(!read_by_model.contains("secret"), "{read_by_model}");
        assert!(error.message.contains("may have taken effect"), "{error}");
    }
    let started = Instant::now();
    let error = call_through_meddler("spin", "").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let error = call_through_meddler("", "withhold").await.unwrap_err();
    assert!(error.message.ends_with("it is too much"), "{error}");
}

#[tokio::test]
async fn an_interceptor_changes_arguments_and_results() {
    assert_eq!(call_through_meddler("edit", "shout").await.unwrap().for_llm, "EDITED");
    let error = call_through_meddler("deny", "").await.unwrap_err();
    assert_eq!(
        error.message,
        "the interceptor `meddler` denied the call: echo is denied to None"
    );
}

// attack: Q7
#[tokio::test]
async fn an_interceptor_calls_no_tools_and_works_in_a_nested_call_with_little_left() {
    let error = call_through_meddler("call", "").await.unwrap_err();
    assert!(error.message.contains("not reached"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let host = host_with(&directory, "edit", "shout", "meddler=echo").await;
    // The calling plugin has no settings, and its nested call has little fuel left.
    let limits = LimitOverrides::default().with_fuel_max(3_000_000);
    let mut session = host.call_session(ToolContext::new().with_extension(limits));
    let relay = session.find(RELAY).unwrap();
    let arguments = object(json!({"tool": "native#echo", "arguments": "{}", "times": 1}));
    let result = session.call(&relay, arguments).await.result.unwrap();
    assert_eq!(result.for_llm, "EDITED");
}

// attack: Q2
#[tokio::test]
async fn calls_of_a_model_are_intercepted_and_a_missing_interceptor_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(&directory, "", "shout").await;
    let model = ScriptedModel::new()
        .call("echo", json!({"text": "quiet"}))
        .answer("done");
    let mut conversation = host.conversation().model(model).build().unwrap();
    conversation.run("Say it.").await.unwrap();
    let shown = conversation
        .history()
        .iter()
        .map(|message| message.content().to_owned());
    let shown: Vec<String> = shown.collect();
    assert!(shown.iter().any(|text| text == "QUIET"), "{shown:?}");
    for (plugin, why) in [("absent", "is not installed"), ("courier", "is not an interceptor")] {
        let directory = tempfile::tempdir().unwrap();
        let builder = builder(&directory, "").await;
        let builder = builder.plugin_interceptor(InterceptorSettings::of_every_tool(plugin));
        let error = builder.build().await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.contains(why), "{error}");
    }
}
