//! Nested calls: their shared limits, and rights that they cannot gain.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolwit::limits::{EngineLimits, LimitOverrides};
use toolwit::tool::{Blackboard, MemoryBlackboard, ToolCaller};
use toolwit::{Arguments, Error, ErrorKind, NativeTool, Tool, ToolContext, ToolError, ToolResult, ToolSet};

use toolwit_tests::{Conversation, Guests};

use crate::host::{Setup, TestHost};
use crate::reach::{BURN, RELAY, RecordedMessages, conversation, may_call, relay};
use crate::server::{Answer, Server};

pub(crate) const FETCH: &str = "probe/test:probe/web#fetch";
const SAY: &str = "probe/test:probe/process#say";
const SETTINGS: &str = "keeper/test:keeper/shelf#settings";
const BURN_AND_BEGIN: &str = "courier/test:courier/courier@0.1.0#burn-and-begin";
const VALUE: &str = "hunter2-\"quoted\"/and more";

/// Forwards calls, and records their arguments and errors.
struct RecordingCaller {
    tools: ToolSet,
    arguments: Mutex<Vec<Value>>,
    failed: Mutex<Vec<Error>>,
}

#[async_trait]
impl ToolCaller for RecordingCaller {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.arguments.lock().unwrap().push(Value::Object(arguments.clone()));
        let called = self.tools.call_tool(id, arguments, context).await;
        let failed = match &called {
            // A result whose second part failed has the error as its source.
            Ok(result) => result.source.as_ref().and_then(|source| source.downcast_ref::<Error>()),
            Err(error) => Some(error.report()),
        };
        self.failed.lock().unwrap().extend(failed.cloned());
        called
    }
}

fn record_calls(host: &mut TestHost) -> Arc<RecordingCaller> {
    record_calls_with(host, [])
}

/// Records calls of the conversation's tools and of additional ones.
fn record_calls_with(host: &mut TestHost, more: impl IntoIterator<Item = Arc<dyn Tool>>) -> Arc<RecordingCaller> {
    let recorder = Arc::new(RecordingCaller {
        tools: ToolSet::from_iter(host.tools().iter().cloned().chain(more)),
        arguments: Mutex::default(),
        failed: Mutex::default(),
    });
    host.context = host.context.clone().with_tools(recorder.clone());
    recorder
}

fn set_limits(host: &mut TestHost, limits: LimitOverrides) {
    host.context = host.context.clone().with_extension(limits);
}

/// A host whose guests `courier` and `probe` may reach a server.
async fn host_with_http_grant(server: &Server) -> TestHost {
    let lines = format!(
        "{}\nhttp = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {} }}]",
        may_call(&[FETCH, RELAY]),
        server.port
    );
    conversation(Setup::new().grant(&lines)).await
}

/// One request of `courier` itself, then `times` requests of `probe`.
fn fetch_and_relay(server: &Server, times: u32) -> Value {
    let authority = format!("127.0.0.1:{}", server.port);
    let fetch =
        json!({"method": "GET", "scheme": "http", "authority": authority, "path": "/", "headers": [], "body": ""});
    json!({"authority": authority, "tool": FETCH, "arguments": fetch.to_string(), "times": times})
}

// attack: B13
#[tokio::test]
async fn requests_of_a_call_and_its_nested_calls_are_counted_together() {
    let server = Server::start(Answer::text("reached")).await;
    let mut host = host_with_http_grant(&server).await;
    set_limits(&mut host, LimitOverrides::default().with_http_requests_max(2));
    let results = host.value("fetch_and_relay", fetch_and_relay(&server, 2)).await;
    assert_eq!(results[0], "200", "the request of the outer call");
    assert!(
        results[1].as_str().unwrap().contains("reached"),
        "the request of the nested call: {results}"
    );
    let third = results[2].as_str().unwrap();
    assert!(third.starts_with("denied: ") && third.contains("2 requests"), "{third}");
    assert_eq!(server.connections(), 2, "the third request was not sent");
    // The next call starts with a full budget.
    let results = host.value("fetch_and_relay", fetch_and_relay(&server, 1)).await;
    assert!(results[1].as_str().unwrap().contains("reached"), "{results}");
    set_limits(&mut host, LimitOverrides::default().with_http_requests_max(0));
    let results = host.value("fetch_and_relay", fetch_and_relay(&server, 1)).await;
    assert!(results[1].as_str().unwrap().starts_with("denied: "), "{results}");
    assert_eq!(server.connections(), 4, "a limit of zero requests allows none");
}

// attack: B13
#[tokio::test]
async fn bytes_of_a_call_and_its_nested_calls_are_counted_together() {
    let server = Server::start(Answer::text(&"x".repeat(10_000))).await;
    let mut host = host_with_http_grant(&server).await;
    set_limits(&mut host, LimitOverrides::default().with_http_bytes_max(25_000));
    let results = host.value("fetch_and_relay", fetch_and_relay(&server, 2)).await;
    assert_eq!(results[0], "200");
    assert!(
        results[1].as_str().unwrap().contains("xxxxx"),
        "two responses fit within the limit"
    );
    let third = results[2].as_str().unwrap();
    assert!(third.contains("BodySize") && !third.contains("xxxxx"), "{third}");
}

#[tokio::test]
async fn nested_calls_are_limited_in_number_and_depth() {
    let mut host = conversation(Setup::new().grant(&may_call(&[BURN, RELAY]))).await;
    let burn = json!({"rounds": 1});
    let one = relay(BURN, &burn, 1);
    let deeper = |inner: &Value| relay(RELAY, inner, 1);
    let failure = async |host: &TestHost, arguments: Value| host.failure("relay", arguments).await;
    assert_ne!(host.value("relay", relay(BURN, &burn, 32)).await, Value::Null);
    let counted = failure(&host, relay(BURN, &burn, 33)).await;
    assert!(
        counted.starts_with("limit: ") && counted.contains("32 calls"),
        "{counted}"
    );
    let four = deeper(&deeper(&one));
    assert_ne!(host.value("relay", four.clone()).await, Value::Null);
    let deep = failure(&host, deeper(&four)).await;
    assert!(deep.contains("limit: calls may be nested at most 4 deep"), "{deep}");
    // A caller may request less, and nested calls count as its own.
    set_limits(
        &mut host,
        LimitOverrides::default()
            .with_nested_calls_max(2)
            .with_nested_depth_max(3),
    );
    assert_ne!(host.value("relay", deeper(&one)).await, Value::Null);
    let counted = failure(&host, deeper(&relay(BURN, &burn, 2))).await;
    assert!(counted.contains("2 calls"), "{counted}");
    assert!(failure(&host, four).await.contains("3 deep"));
    set_limits(&mut host, LimitOverrides::default().with_nested_calls_max(0));
    assert!(failure(&host, one.clone()).await.contains("0 calls"));
    set_limits(&mut host, LimitOverrides::default().with_nested_depth_max(1));
    assert!(failure(&host, one).await.contains("1 deep"));
}

#[tokio::test]
async fn operator_may_allow_more_nested_calls_up_to_the_ceiling() {
    let burn = json!({"rounds": 1});
    let nested = |levels: usize| (1..levels).fold(relay(BURN, &burn, 1), |inner, _| relay(RELAY, &inner, 1));
    let operator = LimitOverrides::default()
        .with_nested_calls_max(40)
        .with_nested_depth_max(u32::MAX);
    let setup = Setup::new().grant(&may_call(&[BURN, RELAY])).limits(operator);
    let mut host = conversation(setup).await;
    assert_ne!(host.value("relay", relay(BURN, &burn, 40)).await, Value::Null);
    assert_ne!(host.value("relay", nested(6)).await, Value::Null);
    set_limits(&mut host, LimitOverrides::default().with_nested_calls_max(u32::MAX));
    let counted = host.failure("relay", relay(BURN, &burn, 41)).await;
    assert!(counted.contains("40 calls"), "{counted}");
    let lowered = EngineLimits::default();
    assert_eq!(lowered.nested_depth_max, 16, "`u32::MAX` is lowered to the ceiling");
    assert!(host.failure("relay", nested(16)).await.contains("16 deep"));
}

#[tokio::test]
async fn background_work_of_a_nested_call_has_its_remaining_fuel() {
    let mut host = conversation(Setup::new().grant(&may_call(&[BURN_AND_BEGIN]))).await;
    let rounds = json!({"rounds": 1_000_000});
    let alone = host.call("burn", rounds.clone()).await.unwrap().usage.unwrap().fuel;
    let twice = json!({"rounds": 1_000_000, "tool": "burn", "arguments": rounds.to_string()});
    let recorder = record_calls(&mut host);
    set_limits(&mut host, LimitOverrides::default().with_fuel_max(alone * 3));
    assert_ne!(
        host.value("relay", relay(BURN_AND_BEGIN, &twice, 1)).await,
        Value::Null,
        "the fuel suffices for both"
    );
    assert!(recorder.failed.lock().unwrap().is_empty());
    set_limits(&mut host, LimitOverrides::default().with_fuel_max(alone * 3 / 2));
    let ended = host.call("relay", relay(BURN_AND_BEGIN, &twice, 1)).await;
    let failed = recorder.failed.lock().unwrap().pop().expect("the work was stopped");
    assert_eq!(failed.kind, ErrorKind::Fuel, "{failed}");
    assert!(
        failed.limit.as_ref().unwrap().max < alone,
        "the limit is the remaining fuel"
    );
    assert!(ended.is_err() || ended.is_ok_and(|result| result.is_error()));
}

#[tokio::test]
async fn calls_through_a_native_tool_have_the_remaining_fuel_of_the_outer_call() {
    let rounds = || Arguments::from_iter([("rounds".to_owned(), json!(1_000_000))]);
    let twice = NativeTool::new(
        "twice",
        "Burns twice.",
        json!({"type": "object"}),
        move |_, context: ToolContext| async move {
            let tools = context.tools().cloned().expect("the conversation has tools");
            tools.call_tool(BURN, rounds(), &context).await?;
            tools.call_tool(BURN, rounds(), &context).await
        },
    );
    let twice: Arc<dyn Tool> = Arc::new(twice.unwrap());
    let mut host = conversation(Setup::new().grant(&may_call(&["native#twice"]))).await;
    let alone = host.call("burn", Value::Object(rounds())).await.unwrap();
    let alone = alone.usage.unwrap().fuel;
    let recorder = record_calls_with(&mut host, [twice]);
    let call = || relay("native#twice", &json!({}), 1);
    set_limits(&mut host, LimitOverrides::default().with_fuel_max(alone * 3));
    assert_ne!(
        host.value("relay", call()).await,
        Value::Null,
        "the fuel suffices for both"
    );
    set_limits(&mut host, LimitOverrides::default().with_fuel_max(alone * 3 / 2));
    let ended = host.call("relay", call()).await;
    assert!(ended.is_err() || ended.is_ok_and(|result| result.is_error()));
    let failed = recorder
        .failed
        .lock()
        .unwrap()
        .first()
        .cloned()
        .expect("the second was stopped");
    assert_eq!(failed.kind, ErrorKind::Fuel, "{failed}");
    assert!(
        failed.limit.as_ref().unwrap().max < alone,
        "the limit is the remaining fuel"
    );
}

#[tokio::test]
async fn session_instance_cannot_lose_rights_for_one_call() {
    let env = "env = [{ name = \"A\", value = \"1\" }]";
    let calls = may_call(&[SETTINGS]);
    let call = || relay(SETTINGS, &json!({}), 1);
    // Its settings stay its own, so it loses no right because of them.
    let own = Setup::new()
        .grant_to(&["courier"], &calls)
        .grant_to(&["keeper"], "config = { colour = \"red\" }");
    let host = conversation(own).await;
    assert_eq!(host.value("relay", call()).await, json!("[[\"colour\",\"red\"]]"));
    let more = Setup::new().grant_to(&["courier"], &calls).grant_to(&["keeper"], env);
    let host = conversation(more).await;
    let message = host.failure("relay", call()).await;
    assert!(
        message.starts_with("denied: ") && message.contains("`keeper` has rights that the calling plugin"),
        "{message}"
    );
    assert_eq!(
        host.value("settings", json!({})).await,
        json!([]),
        "a direct call succeeds"
    );
    let same = Setup::new()
        .grant_to(&["courier"], &format!("{calls}\n{env}"))
        .grant_to(&["keeper"], env);
    let host = conversation(same).await;
    assert_eq!(host.value("relay", call()).await, json!("[]"));
}

// attack: K9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stateful_plugins_that_call_each_other_are_not_deadlocked() {
    let directory = tempfile::tempdir().unwrap();
    let tool = |plugin: &str, function: &str| format!("{plugin}/test:looper/loops@0.1.0#{function}");
    let grants = directory.path().join("grants.toml");
    let grant =
        |plugin: &str| format!("[[grant]]\nplugin = \"{plugin}\"\nany-version = true\ntools = [\"native#meet\"]\n");
    std::fs::write(&grants, format!("version = 1\n{}{}", grant("left"), grant("right"))).unwrap();
    let guests = Guests::with(|options| options.grants_file = Some(grants));
    let bytes = Guests::rust_bytes("looper").await;
    let left = guests.bytes("left", bytes.clone()).await.unwrap();
    let right = guests.bytes("right", bytes).await.unwrap();
    // Both plugins are in a call before either calls the other.
    let both = Arc::new(Barrier::new(2));
    let meet = NativeTool::new(
        "meet",
        "Waits for the other plugin, then calls a tool.",
        json!({"type": "object", "properties": {"then": {"type": "string"}}}),
        move |arguments: Arguments, context: ToolContext| {
            let both = both.clone();
            async move {
                both.wait().await;
                let tools = context.tools().cloned().expect("the conversation has tools");
                let then = arguments["then"].as_str().unwrap_or_default().to_owned();
                tools.call_tool(&then, Arguments::new(), &context).await
            }
        },
    );
    let mut conversation = Conversation::over(&[&left, &right]);
    conversation.tools.add(Arc::new(meet.unwrap()));
    let tools: ToolSet = conversation.tools.iter().map(|named| named.tool.clone()).collect();
    let context = ToolContext::new().with_tools(Arc::new(tools) as Arc<dyn ToolCaller>);
    let pass = |from: &str, to: &str| {
        let arguments = json!({"tool": "native#meet", "arguments": json!({"then": tool(to, "touch")}).to_string()});
        let Value::Object(arguments) = arguments else {
            unreachable!()
        };
        let caller = context.tools().cloned().unwrap();
        let (id, context) = (tool(from, "pass"), context.clone());
        async move {
            caller
                .call_tool(&id, arguments.into_iter().collect(), &context)
                .await
                .unwrap()
        }
    };
    let started = std::time::Instant::now();
    let (first, second) = tokio::join!(pass("left", "right"), pass("right", "left"));
    let texts = [&first, &second].map(|result| result.for_llm.clone());
    let refused: Vec<_> = texts
        .iter()
        .filter(|text| text.contains("waits for this call"))
        .collect();
    assert_eq!(refused.len(), 1, "{texts:?}");
    assert!(
        texts.iter().any(|text| text.contains('1')),
        "the other call succeeds: {texts:?}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "neither waited for its deadline of 30 s"
    );
}

// attack: C19
#[tokio::test]
async fn data_passed_on_by_a_guest_is_redacted_of_its_secrets() {
    let secret = r#"secrets = [{ name = "key", expose = true, variable = "KEY" }]"#;
    let lines = format!(
        "{}\nblackboard = \"read-write\"\n{secret}",
        may_call(&[SAY, "native#repeat"])
    );
    // `probe` has no such secret: its own call does not redact the text that it repeats.
    let setup = Setup::new().grant_to(&["courier"], &lines).secret("key", VALUE);
    let mut host = conversation(setup).await;
    let (messages, board) = (Arc::new(RecordedMessages::default()), Arc::new(MemoryBlackboard::new()));
    let shared: Arc<dyn Blackboard> = board.clone();
    host.context = host
        .context
        .clone()
        .with_output(messages.clone())
        .with_blackboard(shared);

    host.value("progress", json!({"text": format!("the key is {VALUE}")}))
        .await;
    // A control character in the middle is removed before the search for secrets.
    let (begin, end) = VALUE.split_at(5);
    host.value(
        "communicate",
        json!({"text": format!("it is {begin}\u{7}{end}"), "times": 1}),
    )
    .await;
    assert_eq!(messages.all(), ["… the key is [redacted]", "it is [redacted]"]);

    let put = |name: &str, kind: &str, value: Value| json!({"name": name, "kind": kind, "value": value.to_string()});
    host.value("put", put("plain", "note", json!({"of": [VALUE], VALUE: 1})))
        .await;
    host.value("put", put(VALUE, VALUE, json!("nothing"))).await;
    let seen: Vec<String> = board.entries().iter().map(|entry| format!("{entry:?}")).collect();
    assert_eq!(seen.len(), 2);
    assert!(!seen.concat().contains("hunter2"), "{seen:?}");
    assert_eq!(
        board.get("plain").unwrap().artifact().value,
        json!({"of": ["[redacted]"], "[redacted]": 1})
    );

    let recorder = record_calls(&mut host);
    let plain = json!({ "text": VALUE }).to_string();
    let escaped = plain.replace('h', "\\u0068").replace('2', "\\u0032");
    assert!(!escaped.contains("hunter2"));
    for arguments in [plain, escaped] {
        let call = json!({"tool": SAY, "arguments": arguments, "times": 1});
        let repeated = host.call("relay", call).await.unwrap();
        assert_eq!(repeated.for_llm, "[redacted]", "{arguments}");
    }
    let clean = json!({ "text": "[redacted]" });
    assert_eq!(
        *recorder.arguments.lock().unwrap(),
        [clean.clone(), clean],
        "the other guest receives redacted arguments"
    );
}
