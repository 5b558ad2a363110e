//! Decorators and locks of tools that other tools call.

use super::*;
use toolwit_core::ToolDefinition;

/// A tool that calls the tool with the id `callee`.
struct Caller {
    definition: ToolDefinition,
    callee: &'static str,
}

/// Returns the tool `caller`, which calls the tool with the id `callee`.
fn caller_of(callee: &'static str) -> Caller {
    let definition = ToolDefinition::new(ToolId::native("caller"), "caller", "", json!({"type": "object"}));
    Caller { definition, callee }
}

#[async_trait]
impl Tool for Caller {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let tools = context.tools().unwrap();
        tools.call_tool(self.callee, arguments, context).await
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

// accept: 80
#[tokio::test]
async fn the_decorators_and_locks_of_a_restored_tool_apply_to_a_nested_call() {
    let caller = || caller_of("native#erase");
    let unguarded = run_steps([invoke("caller")], |builder| {
        builder.tool(caller()).strategy(EraseInjection)
    })
    .await;
    assert_eq!(unguarded[0], "erase");
    let decorated = |builder: ConversationBuilder| {
        builder
            .tool(caller())
            .strategy(EraseInjection)
            .decorate("native#erase", deny_all())
    };
    assert!(run_steps([invoke("caller")], decorated).await[0].contains(DENIED));
    let lock = Playbook::new().with_lock("native#erase", Unlock::by("caller"));
    let locked = run_steps([invoke("caller")], |builder| {
        builder.tool(caller()).strategy(EraseInjection).strategy(lock)
    })
    .await;
    assert!(locked[0].contains("there is no tool"), "{}", locked[0]);
}

/// A strategy that can restore the tool `github#search`.
struct GitHubSearch;

impl InjectionStrategy for GitHubSearch {
    fn evaluate(&self, _: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        let names = vec!["search".to_owned(), "github_search".to_owned()];
        let search = || Arc::new(echo("found").with_identity(tool.clone(), names)) as Arc<dyn Tool>;
        (tool.as_str() == "github#search").then(search)
    }
}

// accept: 80
#[tokio::test]
async fn decorators_of_the_future_name_of_a_restored_tool_apply_to_a_nested_call() {
    let set_up = |builder: ConversationBuilder| {
        let builder = builder.tool(caller_of("github#search")).tools([echo("search")]);
        builder.strategy(GitHubSearch)
    };
    assert_eq!(run_steps([invoke("caller")], set_up).await[0], "found");
    let guarded = |builder| set_up(builder).decorate(ToolSelector::later("github_search"), deny_all());
    let guarded = run_steps([invoke("caller")], guarded).await;
    assert!(
        guarded[0].contains(DENIED) && guarded[0].contains("github#search"),
        "{}",
        guarded[0]
    );
}
