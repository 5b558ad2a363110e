//! Dispatch of the calls of a response.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Barrier;

use super::*;
use toolwit_core::ToolDefinition;
use toolwit_core::{Error, ErrorKind, Phase};

/// Runs the calls of one response. Returns two items: the results that the model received, and the model itself.
async fn run_response(tools: impl IntoIterator<Item = Arc<dyn Tool>>, step: Step) -> (Vec<String>, TestModel) {
    let (builder, model) = TestModel::playing([step, reply("ok")]);
    let outcome = builder.tools(tools).run("go").await.unwrap();
    assert_valid(&outcome.history);
    (
        tool_results(&outcome.history).into_iter().map(str::to_owned).collect(),
        model,
    )
}

/// Returns a tool whose calls run the futures that `body` creates.
fn async_tool<F, Fut>(name: &str, body: F) -> Arc<dyn Tool>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult> + Send + 'static,
{
    let tool = NativeTool::new(name, "", json!({"type": "object"}), move |_, _| {
        let future = body();
        async move { Ok(future.await) }
    });
    Arc::new(tool.unwrap())
}

// accept: 129
#[tokio::test]
async fn calls_run_concurrently_and_are_answered_in_call_order() {
    let barrier = Arc::new(Barrier::new(3));
    let meet = |name: &'static str| {
        let barrier = barrier.clone();
        async_tool(name, move || {
            let barrier = barrier.clone();
            async move {
                barrier.wait().await;
                ToolResult::text(name)
            }
        })
    };
    let step = call([("c", json!({})), ("a", json!({})), ("b", json!({}))]);
    let (answers, model) = run_response([meet("a"), meet("b"), meet("c")], step).await;
    assert_eq!(answers, ["c", "a", "b"], "no call can end before all have started");
    assert_eq!(model.events_named("tool_started").len(), 3);
}

// accept: 129
#[tokio::test]
async fn the_first_call_is_answered_first_even_if_it_ends_last() {
    let (release, gate) = tokio::sync::watch::channel(false);
    let slow = async_tool("slow", move || {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|is_open| *is_open).await.unwrap();
            ToolResult::text("slow")
        }
    });
    let release = Arc::new(release);
    let fast = async_tool("fast", move || {
        let release = release.clone();
        async move {
            release.send_replace(true);
            ToolResult::text("fast")
        }
    });
    let (answers, _) = run_response([slow, fast], call([("slow", json!({})), ("fast", json!({}))])).await;
    assert_eq!(answers, ["slow", "fast"]);
}

/// A tool in the serial group 7.
struct SerialTool(Arc<dyn Tool>);

#[async_trait]
impl Tool for SerialTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.0.call(arguments, context).await
    }

    fn serial_group(&self) -> Option<u64> {
        Some(7)
    }
}

/// Returns a tool that logs its start and its end, and yields to other calls in between.
fn logging_tool(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Tool> {
    let log = log.clone();
    async_tool(name, move || {
        let log = log.clone();
        async move {
            log.lock().unwrap().push(format!("{name} begins"));
            tokio::task::yield_now().await;
            log.lock().unwrap().push(format!("{name} ends"));
            ToolResult::text(name)
        }
    })
}

// accept: 129
#[tokio::test]
async fn calls_of_one_serial_group_run_sequentially() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let tools: [Arc<dyn Tool>; 3] = [
        Arc::new(SerialTool(logging_tool("add", &log))),
        logging_tool("free", &log),
        Arc::new(SerialTool(logging_tool("total", &log))),
    ];
    let (answers, _) = run_response(
        tools,
        call([("add", json!({})), ("free", json!({})), ("total", json!({}))]),
    )
    .await;
    assert_eq!(answers, ["add", "free", "total"]);
    let log = log.lock().unwrap();
    let position = |text: &str| log.iter().position(|entry| entry == text).unwrap();
    assert!(position("add ends") < position("total begins"), "{log:?}");
    assert!(
        position("free begins") < position("add ends"),
        "a tool without a group does not wait: {log:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_session_waits_for_its_serial_group_until_the_deadline() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let hanging = async_tool("hanging", std::future::pending);
    let tools: [Arc<dyn Tool>; 2] = [
        Arc::new(SerialTool(hanging)),
        Arc::new(SerialTool(logging_tool("next", &log))),
    ];
    let limits = LoopLimits {
        wall_ms_max: 5_000,
        ..LoopLimits::default()
    };
    let session = ToolSession::begin(Conversation::builder().tools(tools).limits(limits))
        .await
        .unwrap();
    let context = ToolContext::new();
    let call = |name| session.call(name, Arguments::new(), &context);
    let (_, next) = tokio::join!(call("hanging"), call("next"));
    let result = next.unwrap().result;
    assert!(result.content().contains("time limit of 5s"), "{}", result.content());
    assert!(log.lock().unwrap().is_empty(), "the next call did not begin");
    assert_eq!(call("next").await.unwrap().result.content(), "next");
}

// accept: 129, attack: E7
#[tokio::test]
async fn a_call_can_use_a_tool_that_an_earlier_call_of_the_response_injects() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let open = logging_tool("open", &log);
    let [late, serial] = ["late", "serial"].map(|name| Arc::new(SerialTool(logging_tool(name, &log))) as Arc<dyn Tool>);
    let strategy = move |context: &crate::injection::InjectionContext<'_>| match context.call().name.as_str() {
        "open" => crate::injection::Injection::add(vec![late.clone()]),
        _ => crate::injection::Injection::none(),
    };
    let (builder, _) = TestModel::playing([
        call([
            ("open", json!({})),
            ("late", json!({})),
            ("serial", json!({})),
            ("never", json!({})),
        ]),
        reply("ok"),
    ]);
    let outcome = builder
        .tools([open, serial])
        .strategy(strategy)
        .run("go")
        .await
        .unwrap();
    let answers = tool_results(&outcome.history);
    assert_eq!(answers[..3], ["open", "late", "serial"]);
    assert!(answers[3].contains("unknown-tool"), "{}", answers[3]);
    let log = log.lock().unwrap();
    let position = |text: &str| log.iter().position(|entry| entry == text).unwrap();
    assert!(
        position("late ends") < position("serial begins"),
        "`serial` waits, because the tool `late` is not known yet and may belong to the same serial group: {log:?}"
    );
}

// accept: 8, attack: E7
#[tokio::test]
async fn an_unknown_name_is_answered_with_the_nearest_names() {
    let names = ["serch_customers", "", "a b", "é", &"x".repeat(500), "search_customer\n"];
    let calls = names.map(|name| (name.to_owned(), "{}".to_owned())).to_vec();
    let (answers, model) = run_response([echo("search_customer"), echo("calc")], raw_calls(calls)).await;
    for answer in &answers {
        let report: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(report["kind"], "unknown-tool");
        assert!(answer.len() < 600, "{answer}");
    }
    assert!(answers[0].contains("did you mean `search_customer`?"), "{}", answers[0]);
    assert!(
        answers[1].contains("the tools are `search_customer`, `calc`"),
        "{}",
        answers[1]
    );
    assert_eq!(model.events_named("call_refused").len(), names.len());
}

// accept: 15, attack: E1
#[tokio::test]
async fn invalid_arguments_are_answered_with_the_expected_parameters() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]});
    let run_count = Arc::new(AtomicUsize::new(0));
    let counter = run_count.clone();
    let add = NativeTool::new("add", "", schema, move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(ToolResult::text("added")) }
    });
    let deep_array = "[".repeat(100_000);
    let invalid_texts = [
        "null",
        "[]",
        "5",
        "{",
        "{'a':1}",
        "{\"a\":1}x",
        "{\"a\":\"one\"}",
        "{}",
        &deep_array,
    ];
    let calls = invalid_texts.map(|text| ("add".to_owned(), text.to_owned())).to_vec();
    let (answers, _) = run_response([Arc::new(add.unwrap()) as Arc<dyn Tool>], raw_calls(calls)).await;
    for answer in &answers {
        let report: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(report["kind"], "invalid-arguments");
        let expected = "send one JSON object with `a` (integer, required), `b` (see its schema, optional)";
        assert_eq!(report["suggestion"], expected);
        assert_eq!(report["tool"], "add");
    }
    assert_eq!(run_count.load(Ordering::Relaxed), 0);
}

// accept: 15, attack: F3
#[tokio::test]
async fn the_history_contains_the_executed_arguments() {
    let show = tool("show", |arguments, _| {
        Ok(ToolResult::text(Value::Object(arguments).to_string()))
    });
    let texts = ["", "```json\n{\"a\": [1,],}\n```", "{\"a\" : 1}", "oops"];
    let (builder, model) = TestModel::playing([
        raw_calls(texts.map(|text| ("show".to_owned(), text.to_owned())).to_vec()),
        reply("ok"),
    ]);
    let outcome = builder.tools([show]).run("go").await.unwrap();
    let calls: Vec<_> = outcome.history[1]
        .tool_calls()
        .iter()
        .map(|call| call.arguments.as_str())
        .collect();
    assert_eq!(calls, ["{}", "{\"a\":[1]}", "{\"a\" : 1}", "{}"]);
    assert_eq!(tool_results(&outcome.history)[..3], ["{}", "{\"a\":[1]}", "{\"a\":1}"]);
    assert_eq!(model.events_named("arguments_repaired").len(), 2);
}

// attack: F1
#[tokio::test]
async fn only_complete_calls_of_a_truncated_response_run() {
    let show = tool("show", |arguments, _| {
        Ok(ToolResult::text(Value::Object(arguments).to_string()))
    });
    let texts = ["{\"a\": 1}", "", "{\"a\": [1,]}", "{\"a\": \"the rest is miss"];
    let calls = raw_calls(texts.map(|text| ("show".to_owned(), text.to_owned())).to_vec());
    let step = edit_response(calls, |response| response.finish = FinishReason::Length);
    let (answers, _) = run_response([show], step).await;
    assert_eq!(answers[0], "{\"a\":1}");
    for answer in &answers[1..] {
        assert!(
            answer.contains("the response was cut before this call was complete; the call was not executed"),
            "{answer}"
        );
    }
}

// attack: F9
#[tokio::test]
async fn duplicate_and_missing_call_ids_are_replaced() {
    let ids = ["same", "same", "", "same"];
    let step = || {
        edit_response(
            call([("a", json!({})), ("b", json!({})), ("a", json!({})), ("b", json!({}))]),
            move |response| {
                for (call, id) in response.tool_calls.iter_mut().zip(ids) {
                    call.id = id.to_owned();
                }
            },
        )
    };
    let (builder, _) = TestModel::playing([step(), step(), reply("ok")]);
    let outcome = builder.tools([echo("a"), echo("b")]).run("go").await.unwrap();
    assert_valid(&outcome.history);
    assert_eq!(tool_results(&outcome.history), ["a", "b", "a", "b", "a", "b", "a", "b"]);
}

// accept: 93
#[tokio::test]
async fn the_model_reads_model_errors_as_json() {
    let gone = tool("gone", |_, _| {
        let error = Error::new(ErrorKind::EntityGone, Phase::Execute, "the customer is gone");
        Err(ToolError::Model(error.with_suggestion("call `search_customer` again")))
    });
    let (answers, model) = run_response([gone], call([("gone", json!({}))])).await;
    let report: Value = serde_json::from_str(&answers[0]).unwrap();
    assert_eq!(
        (report["kind"].as_str(), report["message"].as_str()),
        (Some("entity-gone"), Some("the customer is gone"))
    );
    let finished = &model.events_named("tool_finished")[0];
    assert_eq!(
        (&finished["is_error"], &finished["kind"]),
        (&json!(true), &json!("entity-gone"))
    );
}

// accept: 93
#[tokio::test]
async fn a_panic_is_answered_with_an_error() {
    let bomb = tool("bomb", |_, _| panic!("boom"));
    let step = call([("bomb", json!({})), ("look", json!({}))]);
    let (answers, _) = run_response([bomb, echo("look")], step).await;
    assert!(
        answers[0].contains("panicked inside the host") && !answers[0].contains("boom"),
        "{}",
        answers[0]
    );
    assert_eq!(answers[1], "look");
}

// attack: B5
#[tokio::test]
async fn a_long_result_is_cut_and_can_be_read_in_parts() {
    // The length of the first part: a message has at most 32 KiB, of which 200 bytes are reserved for the marker.
    const PART_BYTES: usize = (32 << 10) - 200;
    let full: String = (0..20_000).map(|n| format!("{n} ")).collect();
    let text = full.clone();
    let dump = tool("dump", move |_, _| Ok(ToolResult::text(text.clone())));
    let (builder, model) = TestModel::playing([
        call([("dump", json!({}))]),
        call([
            ("read_result", json!({"result": "r1", "offset": PART_BYTES})),
            ("read_result", json!({"result": "r7", "offset": 0})),
        ]),
        reply("ok"),
    ]);
    let outcome = builder.tools([dump, echo("read_result")]).run("go").await.unwrap();
    let answers = tool_results(&outcome.history);
    assert!(answers[0].len() <= 32 << 10 && answers[0].contains("continue with `read_result`"));
    assert!(answers[1].starts_with(&full[PART_BYTES..33_000]));
    assert!(answers[2].contains("the stored results are: r1"), "{}", answers[2]);
    let cut = &model.events_named("result_cut")[0];
    assert_eq!(
        (&cut["result"], &cut["bytes"], &cut["shown_bytes"]),
        (&json!("r1"), &json!(full.len()), &json!(PART_BYTES))
    );
    assert_eq!(
        outcome.injected.len(),
        1,
        "`read_result` is injected with the first long result"
    );
    assert_ne!(
        model.request(0).names[1],
        "read_result",
        "the name `read_result` is reserved for the tool of the host"
    );
}
