//! Playbooks and state machines around facades, entities, chained methods and roles.

use std::sync::Arc;

use super::support::*;
use serde_json::json;
use toolwit_agent::injection::{Chaining, Facade, Playbook, StateMachine, Unfolding, Unlock};
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{Conversation, ConversationBuilder, FixedTools, GroupsConfig, ToolGroups};
use toolwit_core::{EntityMethods, ErrorKind, NoArguments, ToolExt, ToolId, ToolProvider, ToolResult, ToolSelector};

fn database() -> Facade {
    let facade = Facade::builder("db", "Works with a database.").tools([echo("query"), echo("erase")]);
    facade.exclusive().build().unwrap()
}

// accept: 55, accept: 66, accept: 67, accept: 68
#[tokio::test]
async fn a_playbook_around_the_tools_of_an_exclusive_facade_holds_across_turns_and_a_resume() {
    let locked = || {
        let playbook = Playbook::new().with_lock("native#erase", Unlock::by("native#query"));
        playbook.with_lock("native#mail", Unlock::by("native#erase"))
    };
    let set_up = |log: &Log| {
        let builder = Conversation::builder()
            .tool(database())
            .tools([echo("mail")])
            .strategy(locked());
        log.observe(builder)
    };
    let log = Log::default();
    let script = calls(["mail", "db", "erase", "mail", "query", "erase", "mail"]).answer("one");
    let outcome = set_up(&log).model(script).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[0], "`mail` is not available yet: call `native#erase` first");
    assert_eq!(results[2], "`erase` is not available yet: call `query` first");
    assert!(
        results[3].contains("`db` is open") && results[6].contains("`db` is open"),
        "the facade locks it, whether the playbook does or not: {results:?}"
    );
    assert_eq!((results[4].as_str(), results[5].as_str()), ("query", "erase"));
    let resumed = set_up(&Log::default()).history(outcome.history).resume(log.events());
    let outcome = resumed
        .model(calls(["mail", "erase"]).answer("two"))
        .run("again")
        .await
        .unwrap();
    assert_eq!(
        tool_results(&outcome.history)[7..],
        ["mail", "erase"],
        "both stay unlocked, and the facade is closed"
    );
}

/// Orders with the method `cancel`.
fn orders() -> EntityMethods<String> {
    let orders = EntityMethods::<String>::new("order");
    let orders = orders.method("cancel", "Cancels.", |id, _: NoArguments, _| async move {
        Ok::<_, String>(format!("{id} is cancelled"))
    });
    orders.unwrap()
}

/// Returns a tool that returns this order.
fn find(name: &'static str, id: &'static str) -> Arc<dyn toolwit_core::Tool> {
    tool(name, move |_, _| {
        let order: Arc<dyn ToolProvider> = Arc::new(orders().entity(id, Arc::new(id.to_owned())).unwrap());
        Ok(ToolResult::text("found").with_provider(order))
    })
}

fn machine(cancel: ToolSelector) -> StateMachine<&'static str> {
    let machine = StateMachine::builder().initial("closed").in_state("closed");
    let machine = machine.tool(echo("open_desk")).transitions_to("open");
    let machine = machine.in_state("open").existing_tool(cancel).transitions_to("closed");
    machine.build().unwrap()
}

// accept: 34, accept: 68, accept: 69
#[tokio::test]
async fn a_state_machine_over_the_methods_of_entities_counts_the_calls_of_every_instance() {
    let log = Log::default();
    let set_up = |log: &Log| {
        let builder = Conversation::builder().tools([find("find_a", "a"), find("find_b", "b")]);
        log.observe(builder.state_machine(machine(ToolSelector::later("native#order.cancel"))))
    };
    let script = calls([
        "find_a",
        "order_a_cancel",
        "open_desk",
        "order_a_cancel",
        "find_b",
        "order_b_cancel",
    ]);
    let outcome = set_up(&log).model(script.answer("one")).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("the state is `closed`; tools that can be called now: `open_desk`"),
        "{}",
        results[1]
    );
    assert_eq!(results[3], "a is cancelled");
    assert!(
        results[5].contains("the state is `closed`"),
        "the other order led to this state: {}",
        results[5]
    );
    let resumed = set_up(&Log::default()).history(outcome.history).resume(log.events());
    let script = calls(["order_b_cancel", "open_desk", "find_b", "order_b_cancel"]).answer("two");
    let outcome = resumed.model(script).run("again").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(results[6].contains("the state is `closed`"), "{}", results[6]);
    assert_eq!(results[9], "b is cancelled");
}

// accept: 47, accept: 68
#[tokio::test]
async fn a_chained_method_is_global_to_a_state_machine_unless_it_is_in_a_state() {
    let chained = || Conversation::builder().chain_from(&orders()).tools([find("find", "a")]);
    let global = chained().state_machine(machine(ToolSelector::later("native#other")));
    assert_eq!(
        results(global, calls(["find", "order_cancel"])).await[1],
        "a is cancelled"
    );
    let in_state = chained().state_machine(machine(ToolSelector::from("native#order.cancel")));
    let results = results(
        in_state,
        calls(["order_cancel", "find", "order_cancel", "open_desk", "order_cancel"]),
    )
    .await;
    assert!(
        results[0].contains("the state is `closed`") || results[0].contains("not available yet"),
        "{}",
        results[0]
    );
    assert!(results[2].contains("the state is `closed`"), "{}", results[2]);
    assert_eq!(results[4], "a is cancelled");
}

// accept: 68
#[test]
fn a_state_refers_to_tools_by_id_and_a_method_that_may_appear_later_says_so() {
    let by_name = StateMachine::builder()
        .initial("a")
        .in_state("a")
        .existing_tool("erase")
        .build();
    let error = by_name.err().unwrap();
    assert!(
        error.kind == ErrorKind::Configuration && error.message.contains("`erase` is not the id of a tool"),
        "{error}"
    );
    let build = |cancel| {
        Conversation::builder()
            .model(ScriptedModel::new())
            .state_machine(machine(cancel))
            .build()
    };
    assert!(build(ToolSelector::from("native#order.cancel")).is_err());
    assert!(build(ToolSelector::later("native#order.cancel")).is_ok());
}

// accept: 66, accept: 94
#[tokio::test]
async fn the_tools_of_a_role_are_locked_by_a_playbook_and_unlock_it_in_the_turn_that_has_the_role() {
    let groups = || {
        let config = GroupsConfig::parse("[groups.web]\ntools = ['fetch', 'login']").unwrap();
        let web = FixedTools::new("local", vec![echo("login"), echo("fetch")]);
        ToolGroups::new().with_source(web).with_config(config).unwrap()
    };
    let playbook = || {
        let playbook = Playbook::new().with_lock(
            ToolSelector::later("native#fetch"),
            Unlock::by(ToolSelector::later("login")),
        );
        playbook.with_locked_tool(echo("publish"), Unlock::by(ToolSelector::later("native#fetch")))
    };
    let script = calls(["publish", "fetch", "login", "fetch", "publish"]).answer("one");
    let script = script.call("fetch", json!({})).call("publish", json!({})).answer("two");
    let builder = Conversation::builder()
        .groups(groups())
        .playbook(playbook())
        .model(script);
    let mut conversation = builder.build().unwrap();
    let outcome = conversation.turn("go").role("web").run().await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("not available yet") && results[1].contains("`login`"),
        "{results:?}"
    );
    assert_eq!(results[3..], ["fetch", "publish"]);
    let outcome = conversation.run("again").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[5].contains("has been removed"),
        "the role ended with its turn: {}",
        results[5]
    );
    assert_eq!(results[6], "publish", "what it unlocked stays unlocked");
    let named = Conversation::builder().groups(groups()).model(ScriptedModel::new());
    let playbook = Playbook::new().with_lock("native#fetch", Unlock::by("publish"));
    assert!(
        named.tools([echo("publish")]).strategy(playbook).build().is_err(),
        "its tools are not known yet"
    );
}

// accept: 57, accept: 66
#[tokio::test]
async fn a_tool_that_is_folded_between_turns_stays_locked_and_unlocked() {
    let strategies = toolwit_agent::injection::StrategyChain::new().then(Unfolding::new().with_refolding());
    let open = Facade::builder("db", "Works.")
        .tools([echo("query"), echo("erase"), echo("idle")])
        .build()
        .unwrap();
    let playbook = Playbook::new().with_lock("native#erase", Unlock::by("native#query"));
    let script = calls(["db", "erase"])
        .answer("one")
        .call("erase", json!({}))
        .call("query", json!({}));
    let script = Arc::new(script.call("erase", json!({})).answer("two"));
    let builder = Conversation::builder().model(script.clone()).strategies(strategies);
    let mut conversation = builder.tool(open).strategy(playbook).build().unwrap();
    conversation.run("one").await.unwrap();
    let outcome = conversation.run("two").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("call `query` first") && results[2].contains("call `query` first"),
        "{results:?}"
    );
    assert_eq!(results[3..], ["query", "erase"]);
    let declared = |at: usize| script.requests()[at].tools.iter().any(|name| name.as_str() == "idle");
    assert!(
        declared(1) && !declared(3),
        "an unused tool is folded with the next turn"
    );
}

// accept: 68, accept: 126
#[tokio::test]
async fn a_playbook_is_not_continued_from_the_history_alone() {
    let playbook = || Playbook::new().with_locked_tool(echo("erase"), Unlock::by("query"));
    let builder = || Conversation::builder().tools([echo("query")]);
    let log = Log::default();
    let script = calls(["query", "erase"]).answer("one");
    let outcome = log
        .observe(builder().playbook(playbook()))
        .model(script)
        .run("go")
        .await
        .unwrap();
    let history = outcome.history;
    let continued =
        |builder: ConversationBuilder| builder.history(history.clone()).model(calls(["erase"]).answer("two"));
    let error = continued(builder().playbook(playbook())).build().err().unwrap();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(
        error.suggestion.as_ref().unwrap().contains("`Playbook::restarted`"),
        "{error:?}"
    );
    let last = async |builder: ConversationBuilder| {
        let outcome = continued(builder).run("again").await.unwrap();
        tool_results(&outcome.history).pop().unwrap()
    };
    assert_eq!(last(builder().playbook(playbook()).resume(log.events())).await, "erase");
    let restarted = last(builder().playbook(playbook().restarted())).await;
    assert!(restarted.contains("call `query` first"), "{restarted}");
    let of_blackboard = Playbook::new().with_locked_tool(echo("erase"), Unlock::by_blackboard("Permit"));
    let locked = last(builder().playbook(of_blackboard)).await;
    assert!(
        locked.contains("`Permit` on the blackboard"),
        "it does not depend on earlier calls: {locked}"
    );
}

// accept: 82, accept: 49
#[tokio::test]
async fn a_one_shot_tool_behind_a_facade_runs_once_in_a_turn_and_again_in_the_next() {
    let rules = Arc::new(echo("rules").one_shot_per_loop("Follow them.")) as Arc<dyn toolwit_core::Tool>;
    let skills = Facade::builder("skills", "Skills.").tools([rules]).build().unwrap();
    let script = calls(["skills", "rules", "skills", "rules"])
        .answer("one")
        .call("rules", json!({}))
        .answer("two");
    let mut conversation = Conversation::builder().tool(skills).model(script).build().unwrap();
    let results = tool_results(&conversation.run("go").await.unwrap().history);
    assert_eq!(results[1], "rules");
    assert!(results[3].starts_with("ALREADY LOADED"), "{}", results[3]);
    let results = tool_results(&conversation.run("again").await.unwrap().history);
    assert_eq!(results[4], "rules", "another turn is another loop");
}

// accept: 43, accept: 66
#[tokio::test]
async fn a_lock_on_the_tool_that_returns_the_object_keeps_the_chained_methods_unbound() {
    let chaining = Chaining::new().with_type(&orders());
    let playbook = Playbook::new().with_locked_tool(find("find", "a"), Unlock::by("login"));
    let builder = Conversation::builder()
        .chaining(chaining)
        .playbook(playbook)
        .tools([echo("login")]);
    let results = results(
        builder,
        calls(["find", "order_cancel", "login", "find", "order_cancel"]),
    )
    .await;
    assert!(
        results[0].contains("call `login` first") && results[1].contains("not available yet"),
        "{results:?}"
    );
    assert_eq!(results[4], "a is cancelled");
    let id = ToolId::native("order.cancel");
    let guarded = Conversation::builder()
        .chain_from(&orders())
        .tools([find("find", "a")])
        .decorate(id, denial());
    assert!(super::support::results(guarded, calls(["find", "order_cancel"])).await[1].contains(DENIED));
}
