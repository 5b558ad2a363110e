//! Access of a guest to its conversation through `toolwit:plugin`: by grant, within limits, and never with more rights than its
//! caller has.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::Scope;
use toolwit::tool::{MemoryBlackboard, NoArguments, OutputSink, ToolCaller};
use toolwit::{ErrorKind, NativeTool, ToolContext, ToolSet};
use toolwit_tests::Guests;

use crate::host::{Setup, TestHost};

/// Records the messages to the user.
#[derive(Default)]
pub(crate) struct RecordedMessages(Mutex<Vec<String>>);

impl RecordedMessages {
    /// Returns all messages, in order.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl OutputSink for RecordedMessages {
    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(format!("… {text}"));
    }

    fn communicate(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Starts a host whose tools can call each other, and adds a native tool.
pub(crate) async fn conversation(setup: Setup) -> TestHost {
    let mut host = setup.start().await;
    let mut tools = ToolSet::new();
    for tool in host.tools() {
        tools.add(tool.clone());
    }
    let shout = NativeTool::typed("shout", "Shouts.", |_: NoArguments, _| async { Ok::<_, String>("HEY") }).unwrap();
    tools.add(Arc::new(shout));
    host.context = ToolContext::new()
        .with("tenant", "acme")
        .with("token", "hunter2")
        .with_tools(Arc::new(tools) as Arc<dyn ToolCaller>);
    host
}

pub(crate) fn relay(tool: &str, arguments: &Value, times: u32) -> Value {
    json!({"tool": tool, "arguments": arguments.to_string(), "times": times})
}

pub(crate) const BURN: &str = "courier/test:courier/courier@0.1.0#burn";
pub(crate) const RELAY: &str = "courier/test:courier/courier@0.1.0#relay";
const TOUCH: &str = "looper/test:looper/loops@0.1.0#touch";
const ENVIRONMENT: &str = "probe/test:probe/process#environment";
const READ: &str = "probe/test:probe/files#read";

pub(crate) fn may_call(tools: &[&str]) -> String {
    format!("tools = {}", json!(tools))
}

// accept: 140
#[tokio::test]
async fn a_guest_reads_the_keys_of_the_context_that_are_granted() {
    let granted = conversation(Setup::new().grant("context = [\"tenant\"]")).await;
    assert_eq!(
        granted.value("read_context", json!({"key": "tenant"})).await,
        json!("\"acme\"")
    );
    assert_eq!(
        granted.value("read_context", json!({"key": "token"})).await,
        Value::Null
    );
    let none = conversation(Setup::new()).await;
    assert_eq!(none.value("read_context", json!({"key": "tenant"})).await, Value::Null);
}

// attack: B12, attack: C21, accept: 102
#[tokio::test]
async fn messages_of_a_guest_are_limited_and_have_no_control_characters() {
    let mut host = conversation(Setup::new()).await;
    let messages = Arc::new(RecordedMessages::default());
    host.context = host.context.clone().with_output(messages.clone());
    host.value("progress", json!({"text": "half\u{1b}[2Jway"})).await;
    host.value("communicate", json!({"text": "done", "times": 1})).await;
    assert_eq!(*messages.0.lock().unwrap(), ["… half[2Jway", "done"]);
    let long = "x".repeat(10_000);
    host.value("communicate", json!({"text": long, "times": 100})).await;
    let bytes: usize = messages.0.lock().unwrap().iter().map(String::len).sum();
    assert!(bytes < 300_000, "{bytes} bytes of {}", 100 * long.len());
}

#[tokio::test]
async fn objects_that_a_guest_adds_are_artifacts_of_the_result() {
    let host = conversation(Setup::new()).await;
    let object = json!({"kind": "invoice", "value": "{\"total\": 5}"});
    let result = host.call("attach", object).await.unwrap();
    assert_eq!(result.artifacts.len(), 1);
    assert_eq!(
        (result.artifacts[0].kind.as_str(), &result.artifacts[0].value),
        ("invoice", &json!({"total": 5}))
    );
    let failure = host
        .failure("attach", json!({"kind": "invoice", "value": "{total"}))
        .await;
    assert!(failure.contains("is not JSON"), "{failure}");
}

// accept: 140, attack: J6
#[tokio::test]
async fn the_blackboard_is_read_and_written_by_grant() {
    let put = json!({"name": "buyer", "kind": "customer", "value": "\"c-1\""});
    for (grant, may_read, may_write) in [
        ("blackboard = \"read-write\"", true, true),
        ("blackboard = \"read\"", true, false),
        ("", false, false),
    ] {
        let mut host = conversation(Setup::new().grant(grant)).await;
        let board: Arc<dyn toolwit::tool::Blackboard> = Arc::new(MemoryBlackboard::new());
        board
            .put_named("seller", toolwit::Artifact::new("customer", json!("c-0")))
            .unwrap();
        host.context = host.context.clone().with_blackboard(board.clone());
        let seen = host.call("names", json!({})).await.unwrap().value.unwrap();
        assert_eq!(seen == json!(["seller"]), may_read, "{grant}: {seen}");
        if may_write {
            host.value("put", put.clone()).await;
            assert_eq!(board.get("buyer").unwrap().value(), &json!("c-1"));
        } else {
            let denied = host.denial("put", put.clone()).await;
            assert!(
                denied.denied[0]
                    .suggestion
                    .contains("grant `read-write` to `courier` under `blackboard`"),
                "{denied:?}"
            );
            assert_eq!(denied.suggestion, None, "the model reads it");
            assert!(board.get("buyer").is_none());
        }
    }
    let alone = conversation(Setup::new().grant("blackboard = \"read-write\"")).await;
    let message = alone.failure("put", put).await;
    assert!(message.contains("no blackboard"), "{message}");
}

#[tokio::test]
async fn a_guest_calls_the_tools_that_are_granted_and_no_others() {
    let host = conversation(Setup::new().grant(&may_call(&[BURN, "native#shout"]))).await;
    assert_ne!(
        host.value("relay", relay(BURN, &json!({"rounds": 3}), 1)).await,
        Value::Null
    );
    assert_eq!(
        host.value("relay", relay("native#shout", &json!({}), 1)).await,
        json!("HEY")
    );
    let wrong = host.failure("relay", relay(BURN, &json!({"rounds": "many"}), 1)).await;
    assert!(
        wrong.starts_with("invalid-arguments: ") && wrong.contains("/rounds"),
        "{wrong}"
    );
    let denied = host.denial("relay", relay(ENVIRONMENT, &json!({}), 1)).await;
    assert!(denied.message.contains("it is not granted"), "{denied}");
    assert!(denied.denied[0].reason.contains("allows"), "{denied:?}");
    let nested = conversation(Setup::new().grant(&may_call(&[READ]))).await;
    let read = relay(READ, &json!({"path": "/etc/passwd"}), 1);
    let relayed = nested.call("relay", read).await.unwrap();
    assert_eq!(
        (&*relayed.denied[0].plugin, &*relayed.denied[0].access),
        ("probe", "read `/etc/passwd`"),
        "the call lists what was denied to a call inside it"
    );
    let ungranted = conversation(Setup::new()).await;
    let denied = ungranted.denial("relay", relay(BURN, &json!({"rounds": 3}), 1)).await;
    assert!(
        denied.denied[0]
            .suggestion
            .contains(&format!("grant `{BURN}` to `courier` under `tools`")),
        "{denied:?}"
    );
    assert_eq!(denied.suggestion, None, "the model reads it");
}

// attack: B1
#[tokio::test]
async fn nested_calls_use_the_fuel_of_the_outer_call() {
    let mut host = conversation(Setup::new().grant(&may_call(&[BURN]))).await;
    let fuel = |result: &toolwit::ToolResult| result.usage.unwrap().fuel;
    let alone = fuel(&host.call("burn", json!({"rounds": 100_000})).await.unwrap());
    let nested = fuel(
        &host
            .call("relay", relay(BURN, &json!({"rounds": 100_000}), 1))
            .await
            .unwrap(),
    );
    assert!(
        nested >= alone,
        "{nested} of which {alone} are those of the nested call"
    );
    host.context = host
        .context
        .clone()
        .with_extension(LimitOverrides::default().with_fuel_max(alone * 3));
    let spent = host
        .call("relay", relay(BURN, &json!({"rounds": 100_000}), 10))
        .await
        .unwrap_err();
    assert_eq!(spent.kind, ErrorKind::Fuel, "{spent}");
}

#[tokio::test]
async fn an_instance_that_waits_for_a_nested_call_is_not_entered() {
    let host = conversation(Setup::new().grant(&may_call(&[TOUCH, BURN]))).await;
    let through = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments.to_string()});
    let looper = "looper/test:looper/loops@0.1.0#pass";
    assert_ne!(
        host.value(looper, through(BURN, json!({"rounds": 1}))).await,
        Value::Null
    );
    let message = host.failure(looper, through(TOUCH, json!({}))).await;
    assert!(message.contains("waits for this call to end"), "{message}");
    assert_eq!(
        host.value("touch", json!({})).await,
        json!(1),
        "the instance is still usable"
    );
}

#[tokio::test]
async fn a_nested_call_has_only_the_grants_of_both_plugins() {
    let env = "env = [{ name = \"A\", value = \"1\" }]";
    let calls = may_call(&[ENVIRONMENT]);
    let probe_only = Setup::new().grant_to(&["courier"], &calls).grant_to(&["probe"], env);
    let host = conversation(probe_only).await;
    assert_eq!(host.value("environment", json!({})).await, json!([["A", "1"]]));
    assert_eq!(
        host.value("relay", relay(ENVIRONMENT, &json!({}), 1)).await,
        json!("[]")
    );
    let both = Setup::new()
        .grant_to(&["courier"], &format!("{calls}\n{env}"))
        .grant_to(&["probe"], env);
    let host = conversation(both).await;
    assert_eq!(
        host.value("relay", relay(ENVIRONMENT, &json!({}), 1)).await,
        json!("[[\"A\",\"1\"]]")
    );
}

// accept: 134
#[tokio::test]
async fn a_result_can_have_separate_texts_for_the_model_and_the_user() {
    let host = conversation(Setup::new()).await;
    let result = json!({"for_llm": "sent", "for_user": "It is on its way.", "silent": false, "is_error": false, "value": "{\"n\":1}"});
    let result = host.call("answer", result).await.unwrap();
    assert_eq!(
        (result.for_llm.as_str(), result.for_user.as_deref()),
        ("sent", Some("It is on its way."))
    );
    assert_eq!(
        (result.artifacts[0].kind.as_str(), &result.artifacts[0].value),
        ("note", &json!({"n": 1}))
    );
    let failed = json!({"for_llm": "no", "silent": true, "is_error": true, "value": "x"});
    let result = host.call("answer", failed).await.unwrap();
    assert!(result.is_error() && result.is_silent());
    assert_eq!(
        host.call("try_answer", json!({"fails": false})).await.unwrap().for_llm,
        "fine"
    );
    assert_eq!(host.failure("try_answer", json!({"fails": true})).await, "it failed");
}

// accept: 85
#[tokio::test]
async fn a_result_can_request_one_background_call() {
    let host = conversation(Setup::new()).await;
    let begin = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments.to_string()});
    let inline = host.call("begin", begin("burn", json!({"rounds": 0}))).await.unwrap();
    assert_eq!(
        (inline.for_llm.as_str(), inline.is_pending()),
        ("begun\n1", false),
        "without a conversation the follow-up call runs inline"
    );
    for (tool, arguments, why) in [
        ("nothing", json!({}), "no such function"),
        ("burn", json!([]), "is not possible"),
        (
            "begin",
            begin("burn", json!({"rounds": 0})),
            "may not request another follow-up call",
        ),
    ] {
        let failed = host.call("begin", begin(tool, arguments)).await.unwrap();
        assert!(failed.is_error() && failed.for_llm.contains(why), "{failed:?}");
        assert!(
            failed.for_llm.starts_with("begun\n"),
            "the first part is done: {failed:?}"
        );
    }
}

#[tokio::test]
async fn background_calls_are_limited_to_the_functions_of_the_conversation() {
    let courier = Guests::new().rust("courier").await;
    let begun = async |scope: Scope| {
        let tools = courier.tools(&scope);
        let begin = tools.iter().find(|tool| tool.definition().name() == "begin").unwrap();
        let arguments = json!({"tool": "burn", "arguments": "{\"rounds\": 0}"});
        let called = begin
            .call(serde_json::from_value(arguments).unwrap(), &ToolContext::new())
            .await;
        called.map(|result| result.for_llm).map_err(toolwit::Error::from)
    };
    assert_eq!(begun(Scope::new()).await.unwrap(), "begun\n1");
    let refused = begun(Scope::new().restricted_to(|id| !id.ends_with("#burn")))
        .await
        .unwrap();
    assert!(refused.contains("no such function for this conversation"), "{refused}");
}

// attack: C20
#[tokio::test]
async fn a_clock_frozen_for_the_caller_is_frozen_for_nested_calls() {
    const TIME: &str = "probe/test:probe/process#time";
    let frozen = format!("{}\nclock = {{ frozen = 1000000000 }}", may_call(&[TIME]));
    let host = conversation(Setup::new().grant_to(&["courier"], &frozen)).await;
    assert_eq!(
        host.value("relay", relay(TIME, &json!({}), 1)).await,
        json!("[1000000000,0]")
    );
    assert_ne!(
        host.value("time", json!({})).await[0],
        json!(1_000_000_000),
        "a direct call gets the real time"
    );
}

// accept: 41
#[tokio::test]
async fn a_session_instance_does_not_retain_the_context_of_a_call() {
    let mut host = conversation(Setup::new().grant(&may_call(&[BURN]))).await;
    let tools: Arc<dyn ToolCaller> = Arc::new(ToolSet::from_iter(host.tools().iter().cloned()));
    let weak = Arc::downgrade(&tools);
    host.context = ToolContext::new().with_tools(tools);
    let pass = json!({"tool": BURN, "arguments": "{\"rounds\": 1}"});
    host.value("pass", pass).await;
    host.context = ToolContext::new();
    assert!(
        weak.upgrade().is_none(),
        "the instance and the tools of its conversation must not refer to each other"
    );
}
