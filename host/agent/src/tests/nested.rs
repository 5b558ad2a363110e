//! Tools that call other tools.

use async_trait::async_trait;

use super::*;
use crate::injection::{Playbook, StateMachine, Unlock};
use toolwit_core::{ToolDefinition, ToolId};

/// Calls the native tool of its argument and returns the outcome.
struct Relay(ToolDefinition);

impl Relay {
    fn tool() -> Arc<dyn Tool> {
        let schema = json!({"type": "object"});
        let id = ToolId::native("relay");
        Arc::new(Self(ToolDefinition::new(id, "relay", "Calls.", schema)))
    }
}

#[async_trait]
impl Tool for Relay {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let id = format!("native#{}", arguments["tool"].as_str().unwrap());
        let tools = context.tools().expect("a tool that calls tools receives them");
        match tools.call_tool(&id, Arguments::new(), context).await {
            Ok(result) => Ok(ToolResult::text(result.content())),
            Err(error) => Ok(ToolResult::text(format!("no: {}", error.report().kind))),
        }
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

/// Returns a step that calls a tool through `relay`.
fn through(tool: &str) -> Step {
    call([("relay", json!({ "tool": tool }))])
}

fn directly(tool: &str) -> Step {
    call([(tool, json!({}))])
}

/// Returns a tool that adds its name to `runs` on each call.
fn logging_tool(name: &str, runs: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Tool> {
    let (name, runs) = (name.to_owned(), runs.clone());
    tool(&name.clone(), move |_, _| {
        runs.lock().unwrap().push(name.clone());
        Ok(ToolResult::text("ran"))
    })
}

#[tokio::test]
async fn tools_of_a_playbook_cannot_be_called_by_other_tools() {
    let runs = Arc::default();
    let playbook = Playbook::new()
        .with_tool(logging_tool("search", &runs))
        .with_locked_tool(logging_tool("publish", &runs), Unlock::by("search"));
    let steps = [
        through("free"),
        through("publish"),
        through("search"),
        directly("publish"),
        directly("search"),
        through("publish"),
        directly("publish"),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let tools = [Relay::tool(), logging_tool("free", &runs)];
    let outcome = builder.tools(tools).playbook(playbook).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[0], "ran");
    assert_eq!(results[1], "no: unknown-tool", "a guarded tool is hidden");
    assert_eq!(results[2], "ran", "an unguarded tool can be called");
    assert!(
        results[3].contains("call `search` first"),
        "only a call of the model unlocks: {}",
        results[3]
    );
    assert_eq!(
        results[4..],
        ["ran", "no: unknown-tool", "ran"],
        "an unlocked tool is still reserved for the model"
    );
    assert_eq!(*runs.lock().unwrap(), ["free", "search", "search", "publish"]);
}

#[tokio::test]
async fn tools_of_a_state_machine_cannot_be_called_by_other_tools() {
    let runs = Arc::default();
    let machine = StateMachine::builder()
        .initial("draft")
        .in_state("draft")
        .tool(logging_tool("confirm", &runs))
        .transitions_to("confirmed")
        .in_state("confirmed")
        .tool(logging_tool("ship", &runs))
        .build()
        .unwrap();
    let steps = [
        through("confirm"),
        through("ship"),
        directly("ship"),
        directly("confirm"),
        through("ship"),
        directly("ship"),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let outcome = builder
        .tools([Relay::tool()])
        .state_machine(machine)
        .run("go")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[..2], ["no: unknown-tool", "no: unknown-tool"]);
    assert!(results[2].contains("the state is `draft`"), "{}", results[2]);
    assert_eq!(results[3..], ["ran", "no: unknown-tool", "ran"]);
    assert_eq!(*runs.lock().unwrap(), ["confirm", "ship"]);
}
