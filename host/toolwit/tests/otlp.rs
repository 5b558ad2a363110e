//! Spans reach a collector.
#![cfg(feature = "otlp")]
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;

use toolwit::telemetry::{OtlpOptions, exporter};
use toolwit::{AgenticTool, Conversation, NativeTool, ScriptedModel, ToolResult};

/// A collector that accepts requests until it received `count` spans.
async fn collect(listener: TcpListener, count: usize) -> Vec<Value> {
    let mut spans = Vec::new();
    while spans.len() < count {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        let body = loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap();
            bytes.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            assert!(head.starts_with("POST /v1/traces "), "{head}");
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap() {
                break body.to_owned();
            }
        };
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        stream.write_all(answer).await.unwrap();
        let request: Value = serde_json::from_str(&body).unwrap();
        let found = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
            .as_array()
            .unwrap();
        spans.extend(found.iter().cloned());
    }
    spans
}

/// Runs a conversation with a call that fails, and returns the spans.
async fn spans(with_content: bool) -> Vec<Value> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = OtlpOptions::new(format!("http://{}", listener.local_addr().unwrap()));
    let options = if with_content { options.with_content() } else { options };
    let collector = tokio::spawn(collect(listener, 4));
    let (layer, exporter) = exporter(options).unwrap();
    let subscriber = tracing_subscriber::registry().with(layer.with_telemetry_filter());
    let _guard = tracing::subscriber::set_default(subscriber);
    let exporter = exporter.spawn();
    let schema = serde_json::json!({"type": "object"});
    let refuse = NativeTool::new("refuse", "Refuses.", schema, |_, _| async {
        Ok(ToolResult::error("the secret result"))
    });
    let model = ScriptedModel::new()
        .call("refuse", serde_json::json!({"q": "the secret question"}))
        .answer("the secret answer");
    let mut conversation = Conversation::builder()
        .model(model)
        .tool(refuse.unwrap())
        .build()
        .unwrap();
    conversation.run("the secret prompt").await.unwrap();
    exporter.shutdown().await;
    collector.await.unwrap()
}

fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let attributes = span["attributes"].as_array().unwrap();
    attributes
        .iter()
        .find(|one| one["key"] == key)
        .map_or(&Value::Null, |one| &one["value"])
}

#[tokio::test]
async fn run_inferences_and_calls_are_spans_of_one_trace_without_content() {
    let spans = spans(false).await;
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let (agent, call) = (named("invoke_agent"), named("execute_tool refuse"));
    assert_eq!(spans.len(), 4);
    for span in &spans {
        assert_eq!(span["traceId"], agent["traceId"]);
        if span["name"] != "invoke_agent" {
            assert_eq!(span["parentSpanId"], agent["spanId"]);
        }
    }
    assert_eq!(attribute(agent, "gen_ai.operation.name")["stringValue"], "invoke_agent");
    assert_eq!(attribute(agent, "gen_ai.provider.name")["stringValue"], "scripted");
    assert_eq!(attribute(agent, "gen_ai.agent.name"), &Value::Null);
    assert_eq!(attribute(call, "gen_ai.tool.name")["stringValue"], "refuse");
    assert_eq!(attribute(call, "error.type")["stringValue"], "tool");
    assert_eq!(call["status"]["code"], 2);
    let chat = spans
        .iter()
        .find(|span| attribute(span, "gen_ai.operation.name")["stringValue"] == "chat")
        .unwrap();
    assert_eq!(attribute(chat, "gen_ai.provider.name")["stringValue"], "scripted");
    assert!(attribute(chat, "gen_ai.usage.input_tokens")["intValue"].is_string());
    assert!(attribute(chat, "gen_ai.response.finish_reasons")["arrayValue"].is_object());
    assert!(!serde_json::to_string(&spans).unwrap().contains("secret"));
}

#[tokio::test]
async fn the_run_of_an_agent_has_its_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = OtlpOptions::new(format!("http://{}", listener.local_addr().unwrap()));
    let collector = tokio::spawn(collect(listener, 6));
    let (layer, exporter) = exporter(options).unwrap();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer.with_telemetry_filter()));
    let exporter = exporter.spawn();
    let reviewer = AgenticTool::new("reviewer", "Reviews.").with_model(ScriptedModel::new().answer("Well."));
    let model = ScriptedModel::new()
        .call("reviewer", serde_json::json!({"task": "Review."}))
        .answer("Done.");
    let mut conversation = Conversation::builder().model(model).tool(reviewer).build().unwrap();
    conversation.run("Go.").await.unwrap();
    exporter.shutdown().await;
    let spans = collector.await.unwrap();
    let inner = spans
        .iter()
        .find(|span| span["name"] == "invoke_agent reviewer")
        .unwrap();
    assert_eq!(attribute(inner, "gen_ai.agent.name")["stringValue"], "reviewer");
    let outer = spans.iter().find(|span| span["name"] == "invoke_agent").unwrap();
    assert_eq!(attribute(outer, "gen_ai.agent.name"), &Value::Null);
}

#[tokio::test]
async fn headers_are_refused_over_plain_http_to_other_machines() {
    let with_key = |endpoint: &str| exporter(OtlpOptions::new(endpoint).with_header("x-api-key", "the secret key"));
    for endpoint in ["http://collector:4318", "http://10.0.0.7", "http://localhost.example"] {
        let error = with_key(endpoint).err().unwrap();
        assert!(error.to_string().contains("over plain HTTP"), "{error}");
        assert!(!format!("{error:?}").contains("secret"));
        assert!(
            exporter(OtlpOptions::new(endpoint)).is_ok(),
            "{endpoint} without headers"
        );
    }
    for endpoint in [
        "https://collector:4318",
        "http://localhost:4318/",
        "http://127.0.0.1:1",
        "http://[::1]:4318",
    ] {
        assert!(with_key(endpoint).is_ok(), "{endpoint}");
    }
    assert!(exporter(OtlpOptions::new("collector")).is_err());
}

#[tokio::test]
async fn content_is_sent_only_if_it_was_asked_for() {
    let text = serde_json::to_string(&spans(true).await).unwrap();
    assert!(
        text.contains("the secret question") && text.contains("the secret answer"),
        "{text}"
    );
}

#[tokio::test]
async fn headers_and_spans_are_not_sent_to_a_proxy() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    // Another process, because the variables of this one cannot be changed.
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "run_inferences_and_calls_are_spans_of_one_trace_without_content",
        ])
        .kill_on_drop(true);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, &address);
    }
    for name in ["NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().unwrap();
    tokio::select! {
        connection = proxy.accept() => panic!("the proxy was contacted: {connection:?}"),
        status = child.wait() => assert!(status.unwrap().success()),
    }
}
