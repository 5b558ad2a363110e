//! Agents in agents, observed, with budgets, cancellation and background work.

use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwit_agent::injection::{Facade, Playbook, Unlock};
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{AgenticTool, Budget, Conversation, ConversationBuilder, Event, RunFailure, StopReason};
use toolwit_core::{Role, Tool, ToolContext, ToolResult};

fn task() -> Value {
    json!({"task": "go"})
}

/// Returns a script that makes a call in each of its turns.
fn repeated(times: usize, tool: &str, arguments: &Value) -> ScriptedModel {
    (0..times).fold(ScriptedModel::new(), |script, _| script.call(tool, arguments.clone()))
}

/// Returns three agents, one inside the other. Each calls the next this number of times, and the innermost calls `work`.
fn tower(rounds: usize, work: Arc<dyn Tool>) -> AgenticTool {
    let script = |tool: &str, arguments: Value| repeated(rounds, tool, &arguments).answer("finished");
    let agent = |name: &str, script| AgenticTool::new(name, "Works.").with_model(script);
    let third = agent("third", script(work.definition().name(), json!({}))).with_tools([work]);
    let second = agent("second", script("third", task())).with_tool(third);
    agent("first", script("second", task())).with_tool(second)
}

fn outer(rounds: usize) -> (ConversationBuilder, Log) {
    let log = Log::default();
    let script = repeated(rounds, "first", &task()).answer("done");
    (
        log.observe(Conversation::builder().model(script).nested_events(true)),
        log,
    )
}

/// Returns whether each call of a history has exactly one answer.
fn is_complete(history: &[toolwit_core::Message]) -> bool {
    let calls = history.iter().flat_map(|message| message.tool_calls()).count();
    let answers = history
        .iter()
        .filter(|message| matches!(message.role, Role::Tool { .. }))
        .count();
    calls == answers
}

// accept: 17, accept: 65
#[tokio::test]
async fn the_events_of_agents_in_agents_form_one_tree_under_the_calls_of_the_outer_ones() {
    let (builder, log) = outer(1);
    builder.tool(tower(1, echo("work"))).run("go").await.unwrap();
    let events = log.with_origins();
    let started = events.iter().filter_map(|(event, origin)| match event {
        Event::ToolStarted { id, name, .. } => Some((name.as_str(), id.clone(), origin.clone())),
        _ => None,
    });
    let started: Vec<_> = started.collect();
    let names: Vec<_> = started.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["first", "second", "third", "work"]);
    assert!(started[0].2.parent_call.is_none());
    for pair in started.windows(2) {
        assert_eq!(
            pair[1].2.parent_call.as_ref(),
            Some(&pair[0].1),
            "each runs in the call before it"
        );
        assert_ne!(pair[1].2.process, pair[0].2.process);
    }
    let ends = events
        .iter()
        .filter(|(event, _)| matches!(event, Event::Finished { .. }));
    let ends: Vec<_> = ends.map(|(_, origin)| origin.process.clone()).collect();
    let begun: Vec<_> = started
        .iter()
        .rev()
        .map(|(_, _, origin)| origin.process.clone())
        .collect();
    assert_eq!(ends, begun, "they end from the inside out, each once");
}

// accept: 100, accept: 133, accept: 144
#[tokio::test]
async fn a_calls_budget_that_stops_agents_in_agents_is_raised_on_the_living_conversation() {
    let calls_max = |calls_max| Budget {
        calls_max: Some(calls_max),
        ..Budget::default()
    };
    let (builder, log) = outer(2);
    let mut conversation = builder
        .tool(tower(2, echo("work")))
        .budget(calls_max(3))
        .build()
        .unwrap();
    let error = conversation.run("one").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::CallLimit { max: 3 }), "{error:?}");
    assert_eq!(
        error.agent.as_deref(),
        Some("third"),
        "the error names the agent that had no call left"
    );
    assert!(is_complete(conversation.history()));
    let works = || {
        let events = log.events().into_iter();
        events
            .filter(|event| matches!(event, Event::ToolStarted { name, .. } if name.as_str() == "work"))
            .count()
    };
    assert_eq!(works(), 0);
    conversation.set_budget(calls_max(20));
    assert_eq!(
        conversation.process().remaining().calls,
        Some(17),
        "the earlier calls count"
    );
    let outcome = conversation.run("two").await.unwrap();
    assert_eq!((outcome.text(), works()), ("done", 1));
    assert!(is_complete(&outcome.history));
}

// accept: 65, accept: 133
#[tokio::test]
async fn a_cancellation_in_the_innermost_agent_ends_all_of_them_and_the_conversation_continues() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let work = tool("work", move |_, _| {
        token.cancel();
        Ok(ToolResult::text("worked"))
    });
    let script = ScriptedModel::new().call("first", task()).answer("still here");
    let log = Log::default();
    let builder = log.observe(Conversation::builder().model(script).nested_events(true));
    let mut conversation = builder.tool(tower(1, work)).build().unwrap();
    let error = conversation.turn("go").cancel(cancel).run().await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::Cancelled), "{error:?}");
    assert!(is_complete(conversation.history()));
    let ends = log.events().into_iter().filter_map(|event| match event {
        Event::Finished { stop, .. } => Some(stop),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [StopReason::Cancelled; 4]);
    let outcome = conversation.run("are you there?").await.unwrap();
    assert_eq!(outcome.text(), "still here");
}

// accept: 66, accept: 71, accept: 101
#[tokio::test]
async fn an_agent_unlocks_a_tool_of_its_caller_through_the_shared_blackboard() {
    let permit = tool("permit", |_, context: ToolContext| {
        let permit = toolwit_core::Artifact::new("Permit", json!({}));
        context
            .blackboard()?
            .put(permit)
            .map_err(toolwit_core::ToolError::Model)?;
        Ok(ToolResult::text("permitted"))
    });
    let office = Facade::builder("office", "Permits.").tools([permit]).build().unwrap();
    let clerk = AgenticTool::new("clerk", "Works.")
        .with_model(calls(["office", "permit"]).answer("filed"))
        .with_tool(office);
    let playbook = Playbook::new().with_locked_tool(echo("build"), Unlock::by_blackboard("Permit"));
    let script = calls(["build"]).call("clerk", task()).call("build", json!({}));
    let results = results(Conversation::builder().playbook(playbook).tool(clerk), script).await;
    assert!(results[0].contains("`Permit` on the blackboard"), "{}", results[0]);
    assert_eq!(results[1..], ["filed", "build"]);
}

// accept: 85, accept: 133
#[tokio::test]
async fn a_late_result_that_arrives_in_a_later_turn_still_injects_its_guarded_methods() {
    let (done, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = std::sync::Mutex::new(Some(wait));
    let order = tool("order", move |_, context: ToolContext| {
        let wait = wait.lock().unwrap().take().unwrap();
        context.background_task()?.spawn(async move {
            wait.await.ok();
            let cart: Arc<dyn toolwit_core::ToolProvider> = Arc::new(cart("9", "late"));
            Ok(ToolResult::text("ready").with_provider(cart))
        });
        Ok(ToolResult::background("ordered"))
    });
    let locked = Playbook::new().with_lock("native#free", Unlock::by("order"));
    let script = calls(["order", "free"]).answer("one").answer("two");
    let script = script
        .call("free", json!({}))
        .call("cart_9_add", json!({"item": "pen"}))
        .answer("three");
    let approve_order =
        toolwit_core::ApprovalGate::new(|request: &toolwit_core::ApprovalRequest| match request.name.as_str() {
            "order" => toolwit_core::Approval::Approved,
            name => toolwit_core::Approval::Denied {
                reason: name.to_owned(),
            },
        });
    let builder = Conversation::builder()
        .tools([order, echo("free")])
        .strategy(locked)
        .decorate("order", approve_order);
    let mut conversation = builder.model(script).build().unwrap();
    let first = tool_results(&conversation.run("one").await.unwrap().history);
    assert!(
        first[1].contains("call `order` first"),
        "a call that has not ended unlocks nothing: {}",
        first[1]
    );
    assert_eq!(
        conversation.run("two").await.unwrap().text(),
        "two",
        "a turn without the result"
    );
    done.send(()).unwrap();
    let woken = conversation.wake().await.unwrap().unwrap();
    let last = tool_results(&woken.history);
    assert!(last[2].contains("ready") && last[3] == "free", "{last:?}");
    assert!(
        last[4].contains(DENIED),
        "the methods have the guard of `order`: {}",
        last[4]
    );
    assert_eq!(conversation.background_calls(), 0);
}

/// The rates of an office, of which the application creates one.
struct Rates(f64);

// accept: 32, accept: 36
#[tokio::test]
async fn a_method_uses_the_dependencies_that_the_tool_gave_to_its_object() {
    struct Price {
        dollars: f64,
        rates: Arc<Rates>,
    }
    let rates = Arc::new(Rates(0.5));
    let weak = Arc::downgrade(&rates);
    let find = tool("find", move |_, _| {
        let price = Price {
            dollars: 8.0,
            rates: rates.clone(),
        };
        let entity = toolwit_core::NativeEntity::new("price", Arc::new(price)).with_id("tea");
        let entity = entity.method(
            "in_euros",
            "Converts.",
            |price: Arc<Price>, _: toolwit_core::NoArguments, _| async move {
                Ok::<_, String>(price.dollars * price.rates.0)
            },
        );
        Ok(ToolResult::text("found").with_provider(Arc::new(entity.unwrap())))
    });
    let builder = Conversation::builder()
        .tools([find])
        .model(calls(["find", "price_tea_in_euros"]).answer("done"));
    let mut conversation = builder.build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history)[1], "4.0");
    drop((conversation, outcome));
    assert!(
        weak.upgrade().is_none(),
        "the object and its dependencies end with the conversation"
    );
}

// accept: 62, accept: 140
#[tokio::test]
async fn the_tools_of_a_facade_depend_on_the_state_of_the_process() {
    let permit = tool("permit", |_, context: ToolContext| {
        let permit = toolwit_core::Artifact::new("Permit", json!({}));
        context
            .blackboard()?
            .put(permit)
            .map_err(toolwit_core::ToolError::Model)?;
        Ok(ToolResult::text("permitted"))
    });
    let desk = Facade::builder("desk", "Works at a desk.").tools_from_context(|context: &ToolContext| {
        let has_permit = context.blackboard()?.count("Permit") > 0;
        let calls = toolwit_agent::AgentProcess::of(context)?.calls();
        Ok(if has_permit && calls >= 3 {
            vec![echo("read"), echo("approve")]
        } else {
            vec![echo("read")]
        })
    });
    let builder = Conversation::builder().tool(desk.build().unwrap()).tools([permit]);
    let results = results(builder, calls(["desk", "approve", "permit", "desk", "approve"])).await;
    assert!(
        !results[0].contains("approve") && results[1].contains("no tool is named"),
        "{results:?}"
    );
    assert!(results[3].contains("approve"), "{}", results[3]);
    assert_eq!(results[4], "approve");
}
