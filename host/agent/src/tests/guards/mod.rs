//! Guards, locks, removals and definitions belong to the id of a tool. They apply however the tool enters the conversation.
//!
//! The methods of an entity inherit the guard of the tool that returned the entity.

mod additions;
mod background;
mod definitions;
mod inherited;
mod locks;
mod nested_calls;
mod removals;

use super::*;
use crate::injection::{Facade, Injection, InjectionContext, InjectionStrategy, Playbook, StateMachine, Unlock};
use toolwit_core::limits::ENTITIES_WITH_OWN_TOOLS_MAX;
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

/// Returns a guard that approves `find` and denies every other tool. A conversation installs it on `find`; the methods of the
/// entities that `find` returns inherit it.
fn approve_only_find() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| match request.name.as_str() {
        "find" => Approval::Approved,
        other => Approval::Denied {
            reason: other.to_owned(),
        },
    })
}

/// Returns a step in which the model calls a tool without arguments.
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

/// A strategy that injects `erase` after a call of `prepare`, and that can restore `erase` for a resume or a
/// nested call.
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

/// Returns a customer with the method `delete`. If a tool returns the customer again, `delete` acts on the new object.
fn customer(id: &str) -> Arc<dyn ToolProvider> {
    with_delete(NativeEntity::new("customer", Arc::new(())).with_id(id).latest_wins())
}

/// Adds the method `delete` to an entity.
fn with_delete(entity: NativeEntity<()>) -> Arc<dyn ToolProvider> {
    let entity = entity.method("delete", "Deletes.", |_, _: NoArguments, _| async {
        Ok::<_, String>("deleted")
    });
    Arc::new(entity.unwrap())
}

/// If one result contains this many entities of a type, the entities share one set of methods.
const SHARED_COUNT: usize = ENTITIES_WITH_OWN_TOOLS_MAX + 1;

/// Returns a tool that returns the customers `c-1` to `c-{count}`. [`SHARED_COUNT`] customers share their methods.
fn find(name: &str, count: usize) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let result = ToolResult::text("found");
        Ok((1..=count).fold(result, |result, id| result.with_provider(customer(&format!("c-{id}")))))
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
