//! Decorators, locks and removals that belong to the identity of a tool, however it enters the conversation.

use tokio::sync::oneshot;

use super::unfolding::open;
use super::*;
use crate::injection::{Facade, Injection, InjectionContext, InjectionStrategy, Playbook, StateMachine, Unlock};
use toolwit_core::{
    Approval, ApprovalGate, ApprovalRequest, Decorator, NativeEntity, NoArguments, ToolDefinition, ToolExt, ToolId,
    ToolLookup, ToolProvider, ToolRegistry, ToolSelector,
};

const DENIED: &str = "not approved";

fn denial() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| Approval::Denied {
        reason: request.tool.to_string(),
    })
}

fn try_it(name: &str) -> Step {
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
struct Injecting;

impl InjectionStrategy for Injecting {
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

/// A customer with the method `delete`, which acts on the newest object.
fn customer(id: &str) -> Arc<dyn ToolProvider> {
    deletable(NativeEntity::new("customer", Arc::new(())).with_id(id).latest_wins())
}

fn deletable(entity: NativeEntity<()>) -> Arc<dyn ToolProvider> {
    let entity = entity.method("delete", "Deletes.", |_, _: NoArguments, _| async {
        Ok::<_, String>("deleted")
    });
    Arc::new(entity.unwrap())
}

/// Returns a tool that returns this number of customers.
fn find(name: &str, count: usize) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let found = ToolResult::text("found");
        Ok((1..=count).fold(found, |found, id| found.with_provider(customer(&format!("c-{id}")))))
    })
}

/// Runs the steps, and returns the answers to the calls.
async fn played(
    steps: impl IntoIterator<Item = Step>,
    set_up: impl FnOnce(ConversationBuilder) -> ConversationBuilder,
) -> Vec<String> {
    let (builder, _) = Stage::set(steps.into_iter().chain([say("ok")]));
    let outcome = set_up(builder).run("go").await.unwrap();
    assert_valid(&outcome.history);
    answers(&outcome.history).into_iter().map(str::to_owned).collect()
}

// accept: 27, accept: 80
#[tokio::test]
async fn an_approval_belongs_to_a_tool_whatever_its_way_in() {
    let guarded = |builder: ConversationBuilder| builder.decorate("native#erase", denial());
    let initial = played([try_it("erase")], |builder| guarded(builder).tools([erase()])).await;
    assert!(initial[0].contains(DENIED), "{}", initial[0]);
    let folded = played([open("db"), try_it("query"), try_it("erase")], |b| {
        guarded(b).tool(database())
    })
    .await;
    assert_eq!(folded[1], "query", "the other tools of the facade are not guarded");
    assert!(
        folded[2].contains(DENIED) && folded[2].contains("native#db/erase"),
        "{}",
        folded[2]
    );
    let injected = played(
        [try_it("prepare"), try_it("erase"), try_it("prepare"), try_it("erase")],
        |builder| guarded(builder).tools([echo("prepare")]).strategy(Injecting),
    );
    let injected = injected.await;
    assert!(
        injected[1].contains(DENIED) && injected[3].contains(DENIED),
        "{injected:?}"
    );
    let renamed = played([try_it("wipe")], |builder| {
        guarded(builder).tools([Arc::new(erase().with_name("wipe")) as _])
    });
    assert!(renamed.await[0].contains(DENIED));
    let own = Arc::new(erase().with_decorator(denial())) as Arc<dyn Tool>;
    let replaced = played([try_it("prepare"), try_it("erase")], |builder| {
        builder.tools([echo("prepare"), own]).strategy(Injecting)
    });
    assert!(
        replaced.await[1].contains(DENIED),
        "the guard of a tool that is replaced"
    );
    let free = played([try_it("erase")], |builder| builder.tools([erase()])).await;
    assert_eq!(free[0], "erase");
}

// accept: 80, accept: 133
#[tokio::test]
async fn an_approval_stays_on_after_a_resume_and_on_a_tool_that_the_application_replaces() {
    let set = |steps: Vec<Step>| {
        let (builder, stage) = Stage::set(steps);
        let builder = builder
            .tool(database())
            .tools([find("find", 1)])
            .decorate("native#erase", denial());
        (
            builder.decorate("find", ApprovalGate::new(|_: &ApprovalRequest| Approval::Approved)),
            stage,
        )
    };
    let (builder, stage) = set(vec![open("db"), try_it("find"), say("ok")]);
    let history = builder.run("go").await.unwrap().history;
    let (builder, _) = set(vec![try_it("erase"), say("ok"), try_it("erase"), say("ok")]);
    let mut resumed = builder.history(history).resume(stage.events()).build().unwrap();
    let outcome = resumed.run("again").await.unwrap();
    assert!(
        answers(&outcome.history).last().unwrap().contains(DENIED),
        "{:?}",
        answers(&outcome.history)
    );
    let ToolLookup::Found(method) = resumed.tools().look_up("customer_c1_delete") else {
        panic!("the method is declared")
    };
    assert!(
        method.tool.decorator().is_some(),
        "the approval of `find` stays on the method"
    );
    resumed.add_tool(erase());
    let outcome = resumed.run("again").await.unwrap();
    assert!(answers(&outcome.history).last().unwrap().contains(DENIED));
}

// accept: 27, accept: 80
#[tokio::test]
async fn methods_of_entities_are_guarded_by_their_own_id_and_by_the_tool_that_returned_them() {
    let method = ToolSelector::later("native#customer.delete");
    for (count, name, arguments) in [
        (1, "customer_c1_delete", json!({})),
        (17, "customer_delete", json!({"customer_id": "c-1"})),
    ] {
        let steps = || [try_it("find"), call([(name, arguments.clone())])];
        let free = played(steps(), |builder| builder.tools([find("find", count)])).await;
        assert_eq!(free[1], "deleted");
        let by_id =
            |builder: ConversationBuilder| builder.tools([find("find", count)]).decorate(method.clone(), denial());
        let by_id = played(steps(), by_id).await;
        assert!(by_id[1].contains(DENIED), "{name}: {}", by_id[1]);
        let once = Arc::new(Mutex::new(false));
        let first_only = ApprovalGate::new(move |request: &ApprovalRequest| {
            if std::mem::replace(&mut *once.lock().unwrap(), true) {
                return Approval::Denied {
                    reason: request.name.clone(),
                };
            }
            Approval::Approved
        });
        let find = Arc::new(find("find", count).with_decorator(first_only)) as Arc<dyn Tool>;
        let by_parent = played(steps(), |builder| builder.tools([find])).await;
        assert!(by_parent[1].contains(DENIED), "{name}: {}", by_parent[1]);
    }
}

// accept: 80
#[tokio::test]
async fn an_inherited_approval_stays_when_an_unguarded_tool_returns_the_entity_again() {
    let steps = [try_it("find"), try_it("list"), try_it("customer_c1_delete")];
    let results = played(steps, |builder| {
        builder
            .tools([find("find", 1), find("list", 1)])
            .decorate("find", only_find())
    });
    assert!(results.await[2].contains(DENIED));
}

/// Returns a guard that approves `find` and denies every other tool.
fn only_find() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| match request.name.as_str() {
        "find" => Approval::Approved,
        other => Approval::Denied {
            reason: other.to_owned(),
        },
    })
}

fn delete_shared() -> Step {
    call([("customer_delete", json!({"customer_id": "c-1"}))])
}

// accept: 80
#[tokio::test]
async fn an_inherited_approval_applies_to_the_methods_that_many_entities_share() {
    let set = |builder: ConversationBuilder| builder.tools([find("find", 1), find("see", 1), find("list", 17)]);
    for before in [
        &["find", "list"][..],
        &["find", "list", "list"],
        &["see", "list", "find"],
        &["list", "find"],
    ] {
        let steps = || before.iter().map(|name| try_it(name)).chain([delete_shared()]);
        let free = played(steps(), set).await;
        assert_eq!(free.last().unwrap(), "deleted", "{before:?}");
        let guarded = played(steps(), |builder| set(builder).decorate("find", only_find())).await;
        assert!(guarded.last().unwrap().contains(DENIED), "{before:?}: {guarded:?}");
    }
    let other = played([try_it("find"), try_it("list"), delete_shared()], |builder| {
        set(builder).decorate("see", denial())
    });
    assert_eq!(
        other.await[2],
        "deleted",
        "the tool with the guard did not return the entity"
    );
}

/// Returns a tool that returns this number of customers, whose methods act on the first object.
fn find_kept(name: &str, count: usize) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let customer = |id| NativeEntity::new("customer", Arc::new(())).with_id(format!("c-{id}"));
        let found = ToolResult::text("found");
        Ok((1..=count).fold(found, |found, id| found.with_provider(deletable(customer(id)))))
    })
}

// accept: 80
#[tokio::test]
async fn a_shared_method_that_calls_the_guarded_tool_of_a_member_asks_for_one_approval() {
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let approve = ApprovalGate::new(move |request: &ApprovalRequest| {
        *count.lock().unwrap() += i32::from(request.name.starts_with("customer"));
        Approval::Approved
    });
    let steps = [try_it("find"), try_it("list"), delete_shared()];
    let results = played(steps, |builder| {
        builder
            .tools([find_kept("find", 1), find_kept("list", 17)])
            .decorate("find", approve)
    });
    assert_eq!(results.await[2], "deleted");
    assert_eq!(*asked.lock().unwrap(), 1);
    let steps = [try_it("see"), try_it("list"), try_it("find"), delete_shared()];
    let results = played(steps, |builder| {
        builder
            .tools([find_kept("see", 1), find_kept("list", 17), find_kept("find", 1)])
            .decorate("find", only_find())
    });
    assert!(
        results.await[3].contains(DENIED),
        "the group has the tool of before the approval"
    );
}

// accept: 80, accept: 133
#[tokio::test]
async fn an_inherited_approval_applies_to_shared_methods_after_a_resume() {
    let set = |steps: Vec<Step>| {
        let (builder, stage) = Stage::set(steps);
        let builder = builder.tools([find("find", 1), find("list", 17)]);
        (builder.decorate("find", only_find()), stage)
    };
    let (builder, stage) = set(vec![try_it("find"), say("ok")]);
    let history = builder.run("go").await.unwrap().history;
    let (builder, _) = set(vec![try_it("list"), delete_shared(), say("ok")]);
    let resumed = builder.history(history).resume(stage.events());
    let history = resumed.run("again").await.unwrap().history;
    let results = answers(&history);
    assert!(results.last().unwrap().contains(DENIED), "{results:?}");
}

/// Returns a tool that returns the customer `c-1` at once, and the customer `c-2` when the test sends it.
fn find_in_background(late: oneshot::Receiver<()>) -> Arc<dyn Tool> {
    let late = Mutex::new(Some(late));
    tool("find", move |_, context| {
        let late = late.lock().unwrap().take().unwrap();
        context.background_task()?.spawn(async move {
            late.await.ok();
            Ok(ToolResult::text("found").with_provider(customer("c-2")))
        });
        Ok(ToolResult::background("started").with_provider(customer("c-1")))
    })
}

// accept: 80, accept: 85, accept: 133
#[tokio::test]
async fn the_approval_of_a_removed_tool_applies_to_its_late_result_also_after_a_resume() {
    let set = |steps: Vec<Step>| {
        let (builder, stage) = Stage::set(steps);
        let (done, late) = oneshot::channel();
        let builder = builder.tools([find_in_background(late)]).decorate("find", only_find());
        (builder, stage, done)
    };
    let (builder, stage, done) = set(vec![
        try_it("find"),
        say("Wait."),
        try_it("customer_c2_delete"),
        say("ok"),
    ]);
    let mut conversation = builder.build().unwrap();
    conversation.run("go").await.unwrap();
    conversation.remove_tool(&ToolId::native("find"));
    done.send(()).unwrap();
    let history = conversation.wake().await.unwrap().unwrap().history;
    assert!(
        answers(&history).last().unwrap().contains(DENIED),
        "{:?}",
        answers(&history)
    );
    let (builder, ..) = set(Vec::new());
    let resumed = builder.history(history).resume(stage.events()).build().unwrap();
    for method in ["customer_c1_delete", "customer_c2_delete"] {
        let ToolLookup::Found(method) = resumed.tools().look_up(method) else {
            panic!("{method} is declared")
        };
        assert!(method.tool.decorator().is_some(), "{} is guarded", method.name);
    }
}

// accept: 80
#[tokio::test]
async fn the_approval_of_a_tool_that_its_registry_removes_during_the_call_applies_to_its_result() {
    let registry = ToolRegistry::new();
    registry.register(find("find", 1).with_name("find"));
    let other = registry.clone();
    let change = tool("change", move |_, _| {
        assert!(other.unregister("find"));
        Ok(ToolResult::text("changed"))
    });
    let steps = [
        call([("change", json!({})), ("find", json!({}))]),
        try_it("customer_c1_delete"),
    ];
    let results = played(steps, |builder| {
        builder
            .registry(&registry)
            .tools([change])
            .decorate("find", only_find())
    });
    let results = results.await;
    assert_eq!(results[1].lines().next(), Some("found"));
    assert!(results[2].contains(DENIED), "{results:?}");
}

#[tokio::test]
async fn chained_methods_are_guarded_and_still_wait_for_an_object() {
    let customers =
        toolwit_core::EntityMethods::<()>::new("customer").method("delete", "Deletes.", |_, _: NoArguments, _| async {
            Ok::<_, String>("deleted")
        });
    let customers = customers.unwrap();
    let steps = [try_it("customer_delete"), try_it("find"), try_it("customer_delete")];
    let results = played(steps, |builder| {
        builder
            .tools([find("find", 1)])
            .chain_from(&customers)
            .decorate("native#customer.delete", denial())
    });
    let results = results.await;
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert!(results[2].contains(DENIED), "{}", results[2]);
}

/// A tool that calls the tool with an id itself.
struct Caller {
    definition: ToolDefinition,
    callee: &'static str,
}

/// Returns the tool `caller`, which calls the tool with this id.
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
async fn a_nested_call_of_a_restored_tool_meets_its_decorators_and_locks() {
    let caller = || caller_of("native#erase");
    let free = played([try_it("caller")], |builder| builder.tool(caller()).strategy(Injecting)).await;
    assert_eq!(free[0], "erase");
    let decorated = |builder: ConversationBuilder| {
        builder
            .tool(caller())
            .strategy(Injecting)
            .decorate("native#erase", denial())
    };
    assert!(played([try_it("caller")], decorated).await[0].contains(DENIED));
    let locked = Playbook::new().with_lock("native#erase", Unlock::by("caller"));
    let locked = played([try_it("caller")], |builder| {
        builder.tool(caller()).strategy(Injecting).strategy(locked)
    })
    .await;
    assert!(locked[0].contains("there is no tool"), "{}", locked[0]);
}

/// A strategy that can restore the tool `github#search`.
struct GitHub;

impl InjectionStrategy for GitHub {
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
async fn a_nested_call_of_a_restored_tool_meets_the_decorators_of_the_name_that_it_would_get() {
    let set = |builder: ConversationBuilder| {
        let builder = builder.tool(caller_of("github#search")).tools([echo("search")]);
        builder.strategy(GitHub)
    };
    assert_eq!(played([try_it("caller")], set).await[0], "found");
    let guarded = |builder| set(builder).decorate(ToolSelector::later("github_search"), denial());
    let guarded = played([try_it("caller")], guarded).await;
    assert!(
        guarded[0].contains(DENIED) && guarded[0].contains("github#search"),
        "{}",
        guarded[0]
    );
}

// accept: 66, accept: 67
#[tokio::test]
async fn a_playbook_locks_tools_behind_a_facade_and_counts_their_calls() {
    let playbook = Playbook::new()
        .with_locked_tool(erase(), Unlock::by("native#query"))
        .with_lock(
            ToolSelector::later("native#customer.delete"),
            Unlock::by("native#erase"),
        );
    let steps = [
        open("db"),
        try_it("erase"),
        try_it("query"),
        try_it("find"),
        try_it("customer_c1_delete"),
        try_it("erase"),
        try_it("customer_c1_delete"),
    ];
    let results = played(steps, |builder| {
        builder.tool(database()).tools([find("find", 1)]).strategy(playbook)
    })
    .await;
    assert_eq!(results[1], "`erase` is not available yet: call `query` first");
    assert_eq!(
        results[4],
        "`customer_c1_delete` is not available yet: call `erase` first"
    );
    assert_eq!((results[5].as_str(), results[6].as_str()), ("erase", "deleted"));
}

// accept: 68, accept: 69, accept: 133
#[tokio::test]
async fn a_state_machine_applies_to_tools_behind_a_facade_also_after_a_resume() {
    let machine = || {
        let machine = StateMachine::builder()
            .initial("safe")
            .in_state("safe")
            .tool(echo("query"))
            .transitions_to("armed");
        machine
            .in_state("armed")
            .existing_tool(&ToolId::native("erase"))
            .transitions_to("safe")
            .build()
            .unwrap()
    };
    let set = |steps: Vec<Step>| {
        let (builder, stage) = Stage::set(steps);
        (builder.tool(database()).strategy(machine()), stage)
    };
    let (builder, stage) = set(vec![open("db"), try_it("erase"), try_it("query"), say("ok")]);
    let outcome = builder.run("go").await.unwrap();
    let results = answers(&outcome.history);
    assert!(
        results[1].contains("the state is `safe`; tools that can be called now: `query`"),
        "{}",
        results[1]
    );
    let (builder, _) = set(vec![try_it("query"), try_it("erase"), try_it("erase"), say("ok")]);
    let resumed = builder.history(outcome.history.clone()).resume(stage.events());
    let outcome = resumed.run("again").await.unwrap();
    let results = answers(&outcome.history);
    assert!(results[3].contains("the state is `armed`"), "{}", results[3]);
    assert_eq!(results[4], "erase");
    assert!(results[5].contains("the state is `safe`"), "{}", results[5]);
}

// accept: 66, accept: 68
#[test]
fn a_reference_to_a_tool_that_the_conversation_cannot_have_is_refused() {
    let build = |set_up: &dyn Fn(ConversationBuilder) -> ConversationBuilder| {
        let (builder, _) = Stage::set([]);
        set_up(builder.tools([echo("search")]).tool(database()))
            .build()
            .map(drop)
    };
    let unlock =
        |unlock: Unlock| build(&|b| b.playbook(Playbook::new().with_locked_tool(echo("publish"), unlock.clone())));
    let error = unlock(Unlock::by("search").or(Unlock::by("serch"))).unwrap_err();
    assert!(error.message.contains("`serch`"), "{error}");
    assert!(
        error
            .suggestion
            .as_deref()
            .unwrap()
            .starts_with("did you mean `search`?"),
        "{error}"
    );
    assert!(
        unlock(Unlock::by_all(["search", "native#query", "erase"])).is_ok(),
        "members of a facade are known"
    );
    assert!(unlock(Unlock::by(ToolSelector::later("customer_c1_delete"))).is_ok());
    assert!(build(&|b| b.decorate("native#nothing", denial())).is_err());
    assert!(build(&|b| b.decorate(ToolSelector::all(), denial())).is_ok());
    assert!(build(&|b| b.strategy(Playbook::new().with_tool(echo("absent")))).is_err());
    let restorable = Playbook::new().with_lock("native#erase", Unlock::by("search"));
    let (builder, _) = Stage::set([]);
    assert!(
        builder
            .tools([echo("search")])
            .strategy(Injecting)
            .strategy(restorable)
            .build()
            .is_ok()
    );
    let machine = || {
        StateMachine::builder()
            .initial("a")
            .in_state("a")
            .tool(echo("absent"))
            .build()
            .unwrap()
    };
    assert!(build(&|b| b.strategy(machine())).is_err());
    assert!(build(&|b| b.state_machine(machine())).is_ok());
}

// accept: 23
#[tokio::test]
async fn a_tool_removed_by_hand_stays_removed_until_it_is_added_by_hand() {
    let set = |steps: Vec<Step>| {
        let (builder, stage) = Stage::set(steps);
        (
            builder.tool(database()).tools([echo("prepare")]).strategy(Injecting),
            stage,
        )
    };
    let tries = || [try_it("prepare"), open("db"), try_it("erase"), say("ok")];
    let (builder, stage) = set(tries().into_iter().chain(tries()).collect());
    let mut conversation = builder.build().unwrap();
    conversation.run("one").await.unwrap();
    assert_eq!(
        conversation.remove_tool(&ToolId::native("erase")).len(),
        2,
        "of the facade, and of the strategy"
    );
    let outcome = conversation.run("two").await.unwrap();
    let results = answers(&outcome.history);
    assert!(
        !results[4].contains("erase") && results[4].contains("query"),
        "{}",
        results[4]
    );
    assert!(results[5].contains("has been removed"), "{}", results[5]);
    assert!(!stage.events_named("tool_withheld").is_empty());
    let (builder, _) = set(tries().into_iter().chain([try_it("erase"), say("ok")]).collect());
    let mut resumed = builder.history(outcome.history).resume(stage.events()).build().unwrap();
    let outcome = resumed.run("three").await.unwrap();
    assert!(answers(&outcome.history).last().unwrap().contains("has been removed"));
    resumed.add_tool(erase());
    let outcome = resumed.run("four").await.unwrap();
    assert_eq!(*answers(&outcome.history).last().unwrap(), "erase");
}

/// Returns a tool whose only parameter has this name.
fn taking(name: &str, parameter: &'static str) -> NativeTool {
    let schema = json!({"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter], "additionalProperties": false});
    let tool = NativeTool::new(
        name,
        format!("Takes {parameter}."),
        schema,
        move |arguments, _| async move { Ok(ToolResult::text(format!("{parameter} = {}", arguments[parameter]))) },
    );
    tool.unwrap()
}

/// A facade whose tool `query` takes a parameter of the selected name.
fn selectable() -> Facade {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    let select = |arguments: &Arguments, _: &ToolContext| {
        let parameter = if arguments["by"] == "name" { "name" } else { "number" };
        Ok(vec![Arc::new(taking("query", parameter)) as Arc<dyn Tool>])
    };
    Facade::builder("db", "Works with a database.")
        .selectable(schema, select)
        .build()
        .unwrap()
}

// accept: 91, accept: 61, accept: 133
#[tokio::test]
async fn a_facade_opened_with_another_selection_declares_the_new_schema_with_which_arguments_are_checked() {
    let select = |by: &str| call([("db", json!({"by": by}))]);
    let query = |parameter: &str| call([("query", json!({parameter: "x"}))]);
    let steps = vec![
        select("name"),
        query("name"),
        select("number"),
        query("name"),
        query("number"),
        say("ok"),
    ];
    let (builder, stage) = Stage::set(steps);
    let outcome = builder.tool(selectable()).run("go").await.unwrap();
    let results = answers(&outcome.history);
    assert!(stage.shown(1).serialised[1].contains(r#""required":["name"]"#));
    assert!(
        stage.shown(3).serialised[1].contains(r#""required":["number"]"#),
        "{:?}",
        stage.shown(3).serialised
    );
    assert!(stage.shown(3).serialised[1].contains("Takes number."));
    assert_eq!(results[1], r#"name = "x""#);
    assert!(
        results[3].contains("`number` (string, required)"),
        "the correction has the new schema: {}",
        results[4]
    );
    assert_eq!(results[4], r#"number = "x""#);
    let (builder, resumed) = Stage::set([query("number"), say("ok")]);
    let history = outcome.history.clone();
    let outcome = builder
        .tool(selectable())
        .history(history)
        .resume(stage.events())
        .run("again")
        .await
        .unwrap();
    assert_eq!(resumed.shown(0).serialised, stage.shown(5).serialised);
    assert_eq!(*answers(&outcome.history).last().unwrap(), r#"number = "x""#);
}

// accept: 91
#[tokio::test]
async fn behind_a_gateway_the_result_describes_the_new_schema() {
    let through = |parameter: &str| call([("call_tool", json!({"name": "query", "arguments": {parameter: "x"}}))]);
    let select = |by: &str| call([("db", json!({"by": by}))]);
    let (builder, stage) = Stage::set([select("name"), select("number"), through("number"), say("ok")]);
    let builder = builder.tool(selectable()).delivery(model::Delivery::Gateway);
    let outcome = builder.run("go").await.unwrap();
    let results = answers(&outcome.history);
    assert!(
        results[1].contains("Takes number.") && results[1].contains(r#"["number"]"#),
        "{}",
        results[1]
    );
    assert_eq!(results[2], r#"number = "x""#);
    assert_eq!(stage.shown(3).serialised, stage.shown(0).serialised);
}

// accept: 129
#[tokio::test]
async fn a_guarded_call_written_for_an_earlier_schema_of_the_same_response_does_not_run() {
    let redefine = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "change" => Injection::add(vec![Arc::new(taking("put", "number"))]),
        _ => Injection::none(),
    };
    let playbook = Playbook::new().with_locked_tool(Arc::new(taking("put", "name")), Unlock::by("change"));
    let put = |parameter: &str| ("put", json!({parameter: "x"}));
    let steps = [call([("change", json!({})), put("name")]), call([put("number")])];
    let results = played(steps, |builder| {
        builder.tools([echo("change")]).playbook(playbook).strategy(redefine)
    })
    .await;
    assert!(results[1].contains("changed the parameters of `put`"), "{}", results[1]);
    assert!(results[1].contains("`number` (string, required)"), "{}", results[1]);
    assert_eq!(results[2], r#"number = "x""#);
}

// accept: 91
#[tokio::test]
async fn a_registry_that_changes_while_the_conversation_runs_is_followed_from_the_next_request() {
    let registry = ToolRegistry::new();
    registry.register(taking("look", "at"));
    let other = registry.clone();
    let change = tool("change", move |_, _| {
        other.register(taking("look", "name"));
        other.register(
            NativeTool::new("new", "Is new.", json!({"type": "object"}), |_, _| async {
                Ok(ToolResult::text(""))
            })
            .unwrap(),
        );
        Ok(ToolResult::text("changed"))
    });
    let look = |parameter: &str| call([("look", json!({parameter: "x"}))]);
    let (builder, stage) = Stage::set([look("at"), try_it("change"), look("name"), say("ok"), say("ok")]);
    let mut conversation = builder.registry(&registry).tools([change]).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let results = answers(&outcome.history);
    assert_eq!((results[0], results[2]), (r#"at = "x""#, r#"name = "x""#));
    assert_eq!(stage.shown(0).names, ["look", "change"]);
    assert_eq!(stage.shown(2).names, ["look", "change", "new"]);
    assert!(stage.shown(2).serialised[0].contains("Takes name."));
    assert!(registry.unregister("new"));
    conversation.run("again").await.unwrap();
    assert_eq!(stage.shown(4).names, ["look", "change"]);
}

// accept: 23, accept: 94
#[tokio::test]
async fn a_role_does_not_add_a_tool_that_was_removed_by_hand_and_its_tools_are_guarded() {
    let groups = ToolGroups::new().with_group(ToolGroup::new("web", "", vec![echo("fetch"), erase()]));
    let (builder, stage) = Stage::set([say("one"), try_it("erase"), say("two")]);
    let late = ToolSelector::later("native#erase");
    let mut conversation = builder.groups(groups).decorate(late, denial()).build().unwrap();
    conversation.turn("1").role("web").run().await.unwrap();
    conversation.remove_tool(&ToolId::native("fetch"));
    let outcome = conversation.turn("2").role("web").run().await.unwrap();
    assert_eq!(stage.shown(0).names, ["fetch", "erase"]);
    assert_eq!(stage.shown(1).names, ["erase"]);
    assert!(answers(&outcome.history)[0].contains(DENIED));
}
