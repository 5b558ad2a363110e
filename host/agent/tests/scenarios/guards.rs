//! Guards that stay on tools inside agents, on methods of objects, and on tools that are registered again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::support::*;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwit_agent::injection::Facade;
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{AgenticTool, Conversation, LoopConfig, Subagent};
use toolwit_core::{
    Approval, ApprovalGate, ApprovalRequest, Arguments, Decorator, SharedToolSet, Tool, ToolContext, ToolError,
    ToolExt, ToolId, ToolResult, ToolSelector,
};

/// Returns an agent that plays a script.
fn agent(name: &str, script: ScriptedModel) -> (AgenticTool, Arc<ScriptedModel>) {
    let model = Arc::new(script);
    (AgenticTool::new(name, "Works.").with_model(model.clone()), model)
}

/// Returns the results of the calls that an agent made in its last run.
fn results_in(model: &ScriptedModel) -> Vec<String> {
    tool_results(&model.requests().pop().unwrap().messages)
}

fn task() -> serde_json::Value {
    json!({"task": "go"})
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    #[allow(dead_code)]
    task: String,
}

/// A decorator that is not a guard: it changes results.
struct Shout;

#[async_trait]
impl Decorator for Shout {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let mut result = tool.call(arguments, context).await?;
        result.for_llm = result.for_llm.to_uppercase();
        Ok(result)
    }
}

// accept: 27, accept: 65, accept: 72, accept: 80
#[tokio::test]
async fn an_approval_of_the_conversation_applies_to_the_tools_of_agents_at_any_depth() {
    let open = || {
        Facade::builder("db", "Works.")
            .tools([echo("query"), echo("erase")])
            .build()
            .unwrap()
    };
    let (innermost, deep) = agent("innermost", calls(["db", "query", "erase"]).answer("3"));
    let (middle, shallow) = agent("middle", calls(["erase"]).call("innermost", task()).answer("2"));
    let innermost = Subagent::of(innermost.with_tool(open())).consuming::<Order>().unwrap();
    let middle = middle.with_tools([echo("erase")]).with_tool(innermost);
    let late = ToolSelector::later("native#erase");
    let builder = Conversation::builder()
        .tool(middle)
        .tools([echo("query")])
        .decorate(late, denial());
    let outer = results(
        builder.decorate("query", Shout),
        ScriptedModel::new().call("middle", task()).call("query", json!({})),
    );
    assert_eq!(outer.await, ["2", "QUERY"]);
    assert!(results_in(&shallow)[0].contains(DENIED), "{:?}", results_in(&shallow));
    let deep = results_in(&deep);
    assert!(
        deep[2].contains(DENIED) && deep[2].contains("native#db/erase"),
        "{deep:?}"
    );
    assert_eq!(
        deep[1], "query",
        "a decorator that is not a guard does not reach agents"
    );
}

// accept: 12, accept: 65, accept: 80
#[tokio::test]
async fn a_guard_in_a_shared_configuration_asks_once_and_a_guard_of_an_agent_stays_in_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let approve = ApprovalGate::new(move |_: &ApprovalRequest| {
        count.fetch_add(1, Ordering::Relaxed);
        Approval::Approved
    });
    let shared = LoopConfig::new()
        .with_tools([echo("pay")])
        .with_decorator("pay", approve);
    let (_, model) = agent("", calls(["pay"]).answer("paid"));
    let worker = AgenticTool::new("worker", "Works.").with_config(shared.clone().with_model(model));
    let builder = Conversation::builder().config(shared).tool(worker);
    assert_eq!(
        results(builder, ScriptedModel::new().call("worker", task())).await,
        ["paid"]
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the same guard is applied once");
    let (worker, inner) = agent("worker", calls(["pay"]).answer("denied"));
    let strict = LoopConfig::new()
        .with_model(inner.clone())
        .with_tools([echo("pay")])
        .with_decorator("pay", denial());
    let builder = Conversation::builder()
        .tool(worker.with_config(strict))
        .tools([echo("pay")]);
    let outer = results(
        builder,
        ScriptedModel::new().call("worker", task()).call("pay", json!({})),
    )
    .await;
    assert_eq!(outer[1], "pay", "the conversation around the agent has no guard");
    assert!(results_in(&inner)[0].contains(DENIED));
}

// accept: 80, accept: 93
#[tokio::test]
async fn a_conversation_that_a_tool_starts_with_its_context_has_the_guards() {
    let inner = Arc::new(calls(["erase"]).answer("tried"));
    let model = inner.clone();
    let nested = toolwit_core::NativeTool::new("nested", "Nests.", json!({"type": "object"}), move |_, context| {
        let builder = Conversation::builder()
            .model(model.clone())
            .tools([echo("erase")])
            .context(context);
        async move {
            let outcome = builder.run("go").await.map_err(ToolError::Model)?;
            Ok(ToolResult::text(outcome.text()))
        }
    });
    let builder = Conversation::builder()
        .tool(nested.unwrap())
        .decorate(ToolSelector::later("erase"), denial());
    assert_eq!(results(builder, calls(["nested"])).await, ["tried"]);
    assert!(results_in(&inner)[0].contains(DENIED));
}

// accept: 80, accept: 91, accept: 133
#[tokio::test]
async fn an_approval_stays_when_a_tool_is_registered_with_another_schema_and_the_conversation_is_resumed() {
    let shared_tools = SharedToolSet::new();
    shared_tools.register(taking("pay", "amount"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let only_small = move || {
        let seen = seen.clone();
        ApprovalGate::new(move |request: &ApprovalRequest| {
            seen.lock().unwrap().push(request.arguments.clone());
            match request.arguments.values().next().and_then(|value| value.as_str()) {
                Some("1") => Approval::Approved,
                _ => Approval::Denied {
                    reason: "too much".to_owned(),
                },
            }
        })
    };
    let set_up = |log: &Log| {
        let builder = Conversation::builder()
            .shared_tools(&shared_tools)
            .decorate("native#pay", only_small());
        log.observe(builder)
    };
    let log = Log::default();
    let script = ScriptedModel::new()
        .call("pay", json!({"amount": "1"}))
        .call("pay", json!({"amount": "2"}));
    let outcome = set_up(&log).model(script.answer("one")).run("go").await.unwrap();
    let before = tool_results(&outcome.history);
    assert_eq!(before[0], r#"amount = "1""#);
    assert!(before[1].contains(DENIED), "{}", before[1]);
    shared_tools.register(taking("pay", "sum"));
    let resumed = set_up(&Log::default()).history(outcome.history).resume(log.events());
    let script = ScriptedModel::new()
        .call("pay", json!({"amount": "1"}))
        .call("pay", json!({"sum": "2"}))
        .call("pay", json!({"sum": "1"}));
    let outcome = resumed.model(script.answer("two")).run("again").await.unwrap();
    let after = &tool_results(&outcome.history)[2..];
    assert!(after[0].contains("`sum` (string, required)"), "{}", after[0]);
    assert!(after[1].contains(DENIED), "{}", after[1]);
    assert_eq!(after[2], r#"sum = "1""#);
    assert_eq!(requests.lock().unwrap().len(), 4, "each call with valid arguments asks");
}

// accept: 75, accept: 80
#[tokio::test]
async fn a_tool_that_answers_directly_is_still_asked_for_behind_a_facade_in_an_agent() {
    let report = Arc::new(echo("report").return_direct()) as Arc<dyn Tool>;
    let open = || {
        Facade::builder("desk", "Works.")
            .tools([report.clone()])
            .build()
            .unwrap()
    };
    let run = async |denied: bool| {
        let (worker, model) = agent("worker", calls(["desk", "report"]).answer("it was refused"));
        let builder = Conversation::builder().tool(worker.with_tool(open()));
        let late = ToolSelector::later("native#report");
        let builder = if denied {
            builder.decorate(late, denial())
        } else {
            builder
        };
        let outer = results(builder, ScriptedModel::new().call("worker", task())).await;
        (outer[0].clone(), model.turns_left())
    };
    assert_eq!(
        run(false).await,
        ("report".to_owned(), 1),
        "its result is the answer of the agent"
    );
    assert_eq!(
        run(true).await,
        ("it was refused".to_owned(), 0),
        "a denied call answers nothing"
    );
}

// accept: 43, accept: 80
#[tokio::test]
async fn a_guard_of_the_tool_that_returned_an_object_stays_on_chained_methods_of_later_objects() {
    let first_only = ApprovalGate::new(|request: &ApprovalRequest| match request.name.as_str() {
        "open" => Approval::Approved,
        name => Approval::Denied {
            reason: name.to_owned(),
        },
    });
    let builder = Conversation::builder().chain_from_any().tools([
        opens("open", vec!["1".to_owned()], |cart| cart),
        opens("free", vec!["2".to_owned()], |cart| cart),
    ]);
    let add = || json!({"item": "pen"});
    let script = || {
        ScriptedModel::new()
            .call("free", json!({}))
            .call("cart_add", add())
            .call("open", json!({}))
            .call("cart_add", add())
            .call("free", json!({}))
            .call("cart_add", add())
    };
    let results = results(builder.decorate("open", first_only), script()).await;
    assert_eq!(results[1], "free,pen", "no guarded tool has returned an object yet");
    assert!(
        results[3].contains(DENIED) && results[5].contains(DENIED),
        "{results:?}"
    );
}

// accept: 23, accept: 80
#[tokio::test]
async fn a_tool_that_was_removed_by_hand_stays_out_of_every_facade_and_its_guard_returns_with_it() {
    let open = |name: &str| {
        Facade::builder(name, "Works.")
            .tools([echo("query"), echo("erase")])
            .build()
            .unwrap()
    };
    let script = calls(["one", "two", "erase", "one_erase"])
        .answer("1")
        .call("erase", json!({}))
        .answer("2");
    let builder = Conversation::builder()
        .tool(open("one"))
        .tool(open("two"))
        .decorate("native#erase", denial());
    let mut conversation = builder.model(script).build().unwrap();
    conversation.remove_tool(&ToolId::native("erase"));
    let outcome = conversation.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        !results[0].contains("erase") && !results[1].contains("erase"),
        "{results:?}"
    );
    assert!(
        !results[2].contains("erase\"") && results[2] != "erase" && results[3] != "erase",
        "{results:?}"
    );
    conversation.add_tool(echo("erase"));
    let outcome = conversation.run("again").await.unwrap();
    assert!(tool_results(&outcome.history)[4].contains(DENIED));
}
