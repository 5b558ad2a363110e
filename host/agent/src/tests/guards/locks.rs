//! Locks of tools in facades, and references to tools that do not exist.

use super::*;

// accept: 66, accept: 67
#[tokio::test]
async fn a_playbook_locks_the_tools_of_a_facade_and_their_calls_unlock_other_tools() {
    let playbook = Playbook::new()
        .with_locked_tool(erase(), Unlock::by("native#query"))
        .with_lock(
            ToolSelector::later("native#customer.delete"),
            Unlock::by("native#erase"),
        );
    let steps = [
        invoke("db"),
        invoke("erase"),
        invoke("query"),
        invoke("find"),
        invoke("customer_c1_delete"),
        invoke("erase"),
        invoke("customer_c1_delete"),
    ];
    let results = run_steps(steps, |builder| {
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
async fn a_state_machine_applies_to_the_tools_of_a_facade_also_after_a_resume() {
    let machine = || {
        let machine = StateMachine::builder()
            .initial("safe")
            .in_state("safe")
            .tool(echo("query"))
            .transitions_to("armed");
        machine
            .in_state("armed")
            .existing_tool(ToolId::native("erase"))
            .transitions_to("safe")
            .build()
            .unwrap()
    };
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        (builder.tool(database()).strategy(machine()), model)
    };
    let (builder, model) = set_up(vec![invoke("db"), invoke("erase"), invoke("query"), reply("ok")]);
    let outcome = builder.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("the state is `safe`; tools that can be called now: `query`"),
        "{}",
        results[1]
    );
    let (builder, _) = set_up(vec![invoke("query"), invoke("erase"), invoke("erase"), reply("ok")]);
    let resumed = builder.history(outcome.history.clone()).resume(model.events());
    let outcome = resumed.run("again").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(results[3].contains("the state is `armed`"), "{}", results[3]);
    assert_eq!(results[4], "erase");
    assert!(results[5].contains("the state is `safe`"), "{}", results[5]);
}

// accept: 66
#[test]
fn a_condition_that_can_never_hold_is_refused() {
    let build = |unlock: Unlock| {
        let (builder, _) = TestModel::playing([]);
        let playbook = Playbook::new().with_locked_tool(echo("publish"), unlock);
        builder.tools([echo("search")]).playbook(playbook).build().map(drop)
    };
    let no_tools: [&str; 0] = [];
    let empty = || Unlock::by_any(no_tools);
    for unlock in [
        empty(),
        empty().or(Unlock::by("search")),
        Unlock::by("search").and(empty()),
    ] {
        let error = build(unlock).unwrap_err();
        assert_eq!(
            error.message,
            "a condition of `native#publish` can never hold: `Unlock::by_any` was called without tools"
        );
        assert!(error.suggestion.is_some(), "{error}");
    }
    assert!(
        build(Unlock::by_all(no_tools)).is_ok(),
        "a condition that requires no calls always holds"
    );
    assert!(build(Unlock::by_any(["search"])).is_ok());
}

// accept: 66, accept: 68
#[test]
fn a_reference_to_a_tool_that_the_conversation_cannot_have_is_refused() {
    let build = |set_up: &dyn Fn(ConversationBuilder) -> ConversationBuilder| {
        let (builder, _) = TestModel::playing([]);
        set_up(builder.tools([echo("search")]).tool(database()))
            .build()
            .map(drop)
    };
    let build_locked =
        |unlock: Unlock| build(&|b| b.playbook(Playbook::new().with_locked_tool(echo("publish"), unlock.clone())));
    let error = build_locked(Unlock::by("search").or(Unlock::by("serch"))).unwrap_err();
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
        build_locked(Unlock::by_all(["search", "native#query", "erase"])).is_ok(),
        "conditions can name the tools of a facade"
    );
    assert!(build_locked(Unlock::by(ToolSelector::later("customer_c1_delete"))).is_ok());
    assert!(build(&|b| b.decorate("native#nothing", deny_all())).is_err());
    assert!(build(&|b| b.decorate(ToolSelector::all(), deny_all())).is_ok());
    // The method `strategy` does not add the tools of a playbook or a state machine.
    assert!(build(&|b| b.strategy(Playbook::new().with_tool(echo("absent")))).is_err());
    // The conversation does not have `native#erase`, but its strategy `EraseInjection` can restore it.
    let erase_lock = Playbook::new().with_lock("native#erase", Unlock::by("search"));
    let (builder, _) = TestModel::playing([]);
    assert!(
        builder
            .tools([echo("search")])
            .strategy(EraseInjection)
            .strategy(erase_lock)
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
