//! Tools that call other tools.

use async_trait::async_trait;

use super::*;
use crate::injection::{Playbook, StateMachine, Unlock};
use toolwit_core::{ToolDefinition, ToolId};

/// A tool that calls the native tool that its argument `tool` names. Returns the result of this call as text, or the kind of its
/// error.
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
            Err(error) => Ok(ToolResult::text(format!("error: {}", error.report().kind))),
        }
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

/// Returns a step in which the model calls `relay`, and `relay` calls the tool.
fn through(tool: &str) -> Step {
    call([("relay", json!({ "tool": tool }))])
}

/// Returns a step in which the model calls the tool itself.
fn directly(tool: &str) -> Step {
    call([(tool, json!({}))])
}

/// Returns a tool that adds its name to `called_names` on each call.
fn recording_tool(name: &str, called_names: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Tool> {
    let (name, called_names) = (name.to_owned(), called_names.clone());
    tool(&name.clone(), move |_, _| {
        called_names.lock().unwrap().push(name.clone());
        Ok(ToolResult::text("ran"))
    })
}

#[tokio::test]
async fn locked_tools_of_a_playbook_cannot_be_called_by_other_tools() {
    let called_names = Arc::default();
    let playbook = Playbook::new()
        .with_tool(recording_tool("search", &called_names))
        .with_locked_tool(recording_tool("publish", &called_names), Unlock::by("search"));
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
    let tools = [Relay::tool(), recording_tool("free", &called_names)];
    let outcome = builder.tools(tools).playbook(playbook).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[0], "ran");
    assert_eq!(
        results[1], "error: unknown-tool",
        "a locked tool is hidden from other tools"
    );
    assert_eq!(
        results[2], "ran",
        "a tool of the playbook without a condition can be called"
    );
    assert!(
        results[3].contains("call `search` first"),
        "only a call by the model unlocks a tool: {}",
        results[3]
    );
    assert_eq!(
        results[4..],
        ["ran", "error: unknown-tool", "ran"],
        "other tools cannot call an unlocked tool either"
    );
    assert_eq!(*called_names.lock().unwrap(), ["free", "search", "search", "publish"]);
}

#[tokio::test]
async fn tools_of_a_state_machine_cannot_be_called_by_other_tools() {
    let called_names = Arc::default();
    let machine = StateMachine::builder()
        .initial("draft")
        .in_state("draft")
        .tool(recording_tool("confirm", &called_names))
        .transitions_to("confirmed")
        .in_state("confirmed")
        .tool(recording_tool("ship", &called_names))
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
    assert_eq!(results[..2], ["error: unknown-tool", "error: unknown-tool"]);
    assert!(results[2].contains("the state is `draft`"), "{}", results[2]);
    assert_eq!(results[3..], ["ran", "error: unknown-tool", "ran"]);
    assert_eq!(*called_names.lock().unwrap(), ["confirm", "ship"]);
}
