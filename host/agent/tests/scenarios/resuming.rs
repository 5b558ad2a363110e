//! Conversations that are resumed while facades, agents and guards are at work.

use std::sync::{Arc, Mutex};

use super::support::*;
use async_trait::async_trait;
use serde_json::json;
use toolwit_agent::injection::{Facade, Playbook, Unlock};
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{AgenticTool, Conversation, ConversationBuilder};
use toolwit_core::{Arguments, Decorator, Tool, ToolContext, ToolError, ToolResult, ToolSelector};

/// A facade that reveals a tool of the selected name, and a nested facade.
fn office() -> Facade {
    let schema = json!({"type": "object", "properties": {"desk": {"type": "string"}}, "required": ["desk"]});
    let select = |arguments: &Arguments, _: &ToolContext| {
        let desk = arguments["desk"].as_str().unwrap();
        let drawer = Facade::builder("drawer", "A drawer.")
            .tools([echo("stamp"), echo("shred")])
            .build();
        Ok(vec![echo(desk), Arc::new(drawer.unwrap()) as Arc<dyn Tool>])
    };
    Facade::builder("office", "Has desks.")
        .select_with(schema, select)
        .build()
        .unwrap()
}

fn set_up(log: &Log) -> ConversationBuilder {
    let playbook = Playbook::new().with_lock(
        ToolSelector::later("native#stamp"),
        Unlock::by(ToolSelector::later("native#tax")),
    );
    let builder = Conversation::builder().tool(office()).strategy(playbook);
    log.observe(builder.decorate(ToolSelector::later("native#shred"), denial()))
}

// accept: 56, accept: 61, accept: 66, accept: 80, accept: 126
#[tokio::test]
async fn created_tools_in_nested_facades_keep_locks_and_guards_over_two_resumes() {
    let log = Log::default();
    let script = ScriptedModel::new()
        .call("office", json!({"desk": "tax"}))
        .call("drawer", json!({}));
    let script = script.call("stamp", json!({})).call("shred", json!({})).answer("one");
    let outcome = set_up(&log).model(script).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[2].contains("not available yet") && results[3].contains(DENIED),
        "{results:?}"
    );
    let (second, names) = (Log::default(), |builder: &Conversation| {
        builder
            .tools()
            .iter()
            .map(|tool| tool.name.to_string())
            .collect::<Vec<_>>()
    });
    let script = calls(["tax", "stamp", "shred"]).answer("two");
    let resumed = set_up(&second)
        .history(outcome.history)
        .resume(log.events())
        .model(script);
    let mut resumed = resumed.build().unwrap();
    let before = names(&resumed);
    let outcome = resumed.run("again").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[4..6], ["tax", "stamp"]);
    assert!(results[6].contains(DENIED), "{}", results[6]);
    let events = log.events().into_iter().chain(second.events());
    let script = ScriptedModel::new()
        .call("stamp", json!({}))
        .call("office", json!({"desk": "law"}))
        .call("law", json!({}));
    let third = set_up(&Log::default())
        .history(outcome.history)
        .resume(events)
        .model(script.answer("three"));
    let mut third = third.build().unwrap();
    assert_eq!(names(&third), before, "the same tools under the same names");
    let results = tool_results(&third.run("once more").await.unwrap().history);
    assert_eq!((results[7].as_str(), results[9].as_str()), ("stamp", "law"));
}

// accept: 65, accept: 80, accept: 126
#[tokio::test]
async fn an_agent_of_a_resumed_conversation_begins_again_and_keeps_the_guards_of_the_conversation() {
    let worker = |script: ScriptedModel| {
        let playbook = Playbook::new()
            .with_tool(echo("look"))
            .with_locked_tool(echo("act"), Unlock::by("look"));
        let model = Arc::new(script);
        let agent = AgenticTool::new("worker", "Works.")
            .with_model(model.clone())
            .with_playbook(playbook);
        (agent.with_tools([echo("pay")]), model)
    };
    let builder = |agent: AgenticTool, log: &Log| {
        let builder = Conversation::builder()
            .tool(agent)
            .decorate(ToolSelector::later("pay"), denial());
        log.observe(builder).model(
            ScriptedModel::new()
                .call("worker", json!({"task": "go"}))
                .answer("done"),
        )
    };
    let log = Log::default();
    let (agent, _) = worker(calls(["look", "act"]).answer("acted"));
    let outcome = builder(agent, &log).run("go").await.unwrap();
    let (agent, model) = worker(calls(["act", "pay"]).answer("tried"));
    let resumed = builder(agent, &Log::default())
        .history(outcome.history)
        .resume(log.events());
    let outcome = resumed.run("again").await.unwrap();
    assert_eq!(tool_results(&outcome.history), ["acted", "tried"]);
    let inner = tool_results(&model.requests().pop().unwrap().messages);
    assert!(
        inner[0].contains("call `look` first"),
        "each call of an agent begins with locked tools: {}",
        inner[0]
    );
    assert!(inner[1].contains(DENIED), "{}", inner[1]);
}

/// A decorator that is not a guard: it writes the ids of the tools that run to a list.
#[derive(Clone, Default)]
struct Audit(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Decorator for Audit {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        self.0.lock().unwrap().push(tool.definition().id.to_string());
        tool.call(arguments, context).await
    }
}

// accept: 61, accept: 80, accept: 126, accept: 132
#[tokio::test]
async fn a_decorator_applies_once_to_tools_that_are_created_again_for_other_arguments_and_by_a_resume() {
    let audit = Audit::default();
    let set_up = |log: &Log| {
        let builder = Conversation::builder()
            .tool(office())
            .decorate(ToolSelector::later("native#tax"), audit.clone());
        log.observe(builder.decorate(ToolSelector::all(), audit.clone()))
    };
    let open = |desk: &str| json!({ "desk": desk });
    let log = Log::default();
    let script = ScriptedModel::new()
        .call("office", open("tax"))
        .call("office", open("law"))
        .call("office", open("tax"));
    let outcome = set_up(&log)
        .model(script.call("tax", json!({})).answer("one"))
        .run("go")
        .await
        .unwrap();
    let resumed = set_up(&Log::default()).history(outcome.history).resume(log.events());
    resumed.model(calls(["tax"]).answer("two")).run("again").await.unwrap();
    let tax = audit
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|id| *id == "native#office/tax")
        .count();
    assert_eq!(tax, 4, "two decorators, each once in each of two calls");
    assert_eq!(
        audit
            .0
            .lock()
            .unwrap()
            .iter()
            .filter(|id| *id == "native#office")
            .count(),
        3
    );
}
