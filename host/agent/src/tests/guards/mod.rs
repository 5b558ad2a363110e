//! Guards, locks, removals and definitions that belong to the identity of a tool, however it enters the conversation.

mod background;
mod definitions;
mod inherited;
mod locks;
mod nested_calls;
mod removals;
mod ways_in;

use super::unfolding::open;
use super::*;
use crate::injection::{Facade, Injection, InjectionContext, InjectionStrategy, Playbook, StateMachine, Unlock};
use toolwit_core::{
    Approval, ApprovalGate, ApprovalRequest, Decorator, NativeEntity, NoArguments, SharedToolSet, ToolExt, ToolId,
    ToolLookup, ToolProvider, ToolSelector,
};

const DENIED: &str = "not approved";

/// Returns a guard that denies every tool. The reason is the id of the tool.
fn deny_all() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| Approval::Denied {
        reason: request.tool.to_string(),
    })
}

/// Returns a guard that approves `find` and denies every other tool.
fn approve_only_find() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| match request.name.as_str() {
        "find" => Approval::Approved,
        other => Approval::Denied {
            reason: other.to_owned(),
        },
    })
}

fn invoke(name: &str) -> Step {
    call([(name, json!({}))])
}

fn erase() -> Arc<dyn Tool> {
    echo("erase")
}

fn database() -> Facade {
    Facade::builder("db", "Works with a database.")
        .tools([erase(), echo("query")])
        .build()
        .unwrap()
}

/// A strategy that injects `erase` after `prepare`, and can restore it.
struct EraseInjection;

impl InjectionStrategy for EraseInjection {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        match context.call().name.as_str() {
            "prepare" => Injection::add(vec![erase()]),
            _ => Injection::none(),
        }
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        (*tool == ToolId::native("erase")).then(erase)
    }
}

/// Returns a customer with the method `delete`, which acts on the newest object.
fn customer(id: &str) -> Arc<dyn ToolProvider> {
    deletable(NativeEntity::new("customer", Arc::new(())).with_id(id).latest_wins())
}

fn deletable(entity: NativeEntity<()>) -> Arc<dyn ToolProvider> {
    let entity = entity.method("delete", "Deletes.", |_, _: NoArguments, _| async {
        Ok::<_, String>("deleted")
    });
    Arc::new(entity.unwrap())
}

/// Returns a tool that returns `count` customers.
fn find(name: &str, count: usize) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let found = ToolResult::text("found");
        Ok((1..=count).fold(found, |found, id| found.with_provider(customer(&format!("c-{id}")))))
    })
}

/// Runs the steps, and returns the results of the calls.
async fn run_steps(
    steps: impl IntoIterator<Item = Step>,
    set_up: impl FnOnce(ConversationBuilder) -> ConversationBuilder,
) -> Vec<String> {
    let (builder, _) = TestModel::playing(steps.into_iter().chain([reply("ok")]));
    let outcome = set_up(builder).run("go").await.unwrap();
    assert_valid(&outcome.history);
    tool_results(&outcome.history).into_iter().map(str::to_owned).collect()
}
