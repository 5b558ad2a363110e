//! Tools that call tools.

use async_trait::async_trait;

use super::*;
use crate::injection::{Playbook, StateMachine, Unlock};
use toolwit_core::{ToolDefinition, ToolId};

/// Calls the native tool that it is told to call, and says what came of it.
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
        let tools = context.tools().expect("who says that it calls tools is given them");
        match tools.call_tool(&id, Arguments::new(), context).await {
            Ok(result) => Ok(ToolResult::text(result.content())),
            Err(error) => Ok(ToolResult::text(format!("no: {}", error.report().kind))),
        }
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

fn through(tool: &str) -> Step {
    call([("relay", json!({ "tool": tool }))])
}

fn directly(tool: &str) -> Step {
    call([(tool, json!({}))])
}

/// A tool that counts how often it ran.
fn counted(name: &str, ran: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Tool> {
    let (name, ran) = (name.to_owned(), ran.clone());
    tool(&name.clone(), move |_, _| {
        ran.lock().unwrap().push(name.clone());
        Ok(ToolResult::text("ran"))
    })
}

#[tokio::test]
async fn what_a_playbook_locks_is_for_the_model_alone() {
    let ran = Arc::default();
    let playbook = Playbook::new()
        .with_tool(counted("search", &ran))
        .with_locked_tool(counted("publish", &ran), Unlock::by("search"));
    let steps = [
        through("free"),
        through("publish"),
        through("search"),
        directly("publish"),
        directly("search"),
        through("publish"),
        directly("publish"),
        say("ok"),
    ];
    let (builder, _) = Stage::set(steps);
    let tools = [Relay::tool(), counted("free", &ran)];
    let outcome = builder.tools(tools).playbook(playbook).run("go").await.unwrap();
    let told = answers(&outcome.history);
    assert_eq!(told[0], "ran");
    assert_eq!(told[1], "no: unknown-tool", "it is locked");
    assert_eq!(told[2], "ran", "this one is never locked");
    assert!(
        told[3].contains("call `search` first"),
        "only a call of the model unlocks: {}",
        told[3]
    );
    assert_eq!(
        told[4..],
        ["ran", "no: unknown-tool", "ran"],
        "unlocked, it is still the model's"
    );
    assert_eq!(*ran.lock().unwrap(), ["free", "search", "search", "publish"]);
}

#[tokio::test]
async fn what_a_state_machine_watches_is_for_the_model_alone() {
    let ran = Arc::default();
    let machine = StateMachine::builder()
        .initial("draft")
        .in_state("draft")
        .tool(counted("confirm", &ran))
        .transitions_to("confirmed")
        .in_state("confirmed")
        .tool(counted("ship", &ran))
        .build()
        .unwrap();
    let steps = [
        through("confirm"),
        through("ship"),
        directly("ship"),
        directly("confirm"),
        through("ship"),
        directly("ship"),
        say("ok"),
    ];
    let (builder, _) = Stage::set(steps);
    let outcome = builder
        .tools([Relay::tool()])
        .state_machine(machine)
        .run("go")
        .await
        .unwrap();
    let told = answers(&outcome.history);
    assert_eq!(told[..2], ["no: unknown-tool", "no: unknown-tool"]);
    assert!(told[2].contains("the state is `draft`"), "{}", told[2]);
    assert_eq!(told[3..], ["ran", "no: unknown-tool", "ran"]);
    assert_eq!(*ran.lock().unwrap(), ["confirm", "ship"]);
}
