//! Conversations with thousands of tools.

use std::sync::Arc;

use super::support::*;
use serde_json::json;
use toolwit_agent::injection::{Facade, Playbook, Unlock};
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{Conversation, Event};
use toolwit_core::limits::DECLARED_TOOLS_MAX;
use toolwit_core::{Tool, ToolSelector};

fn numbered(prefix: &str, count: usize) -> Vec<Arc<dyn Tool>> {
    (0..count).map(|number| echo(&format!("{prefix}_{number}"))).collect()
}

/// Returns the number of tools of each request.
fn declared(script: &ScriptedModel) -> Vec<usize> {
    script.requests().iter().map(|request| request.tools.len()).collect()
}

// accept: 40, accept: 66, accept: 80
#[tokio::test]
async fn four_thousand_initial_tools_can_be_called_by_name_and_keep_their_locks_and_guards() {
    let playbook = Playbook::new().with_lock("native#tool_3998", Unlock::by("tool_3999"));
    let script = Arc::new(calls(["tool_3998", "tool_3997", "tool_3999", "tool_3998", "tool_4000"]).answer("done"));
    let log = Log::default();
    let builder = Conversation::builder()
        .tools(numbered("tool", 4_000))
        .strategy(playbook);
    let builder = log.observe(builder.decorate("tool_3997", denial()).model(script.clone()));
    let outcome = builder.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(results[0].contains("call `tool_3999` first"), "{}", results[0]);
    assert!(results[1].contains(DENIED), "{}", results[1]);
    assert_eq!(results[2..4], ["tool_3999", "tool_3998"]);
    assert!(
        results[4].contains("did you mean") && results[4].len() < 400,
        "{}",
        results[4]
    );
    let declared = declared(&script);
    assert!(
        declared.iter().all(|count| *count == DECLARED_TOOLS_MAX),
        "{declared:?}"
    );
    let last = &script.requests()[5].tools;
    assert!(
        last.iter().any(|name| name.as_str() == "tool_3998"),
        "a called tool is declared again"
    );
    let evicted = log.events().into_iter().filter_map(|event| match event {
        Event::ToolsEvicted { names } => Some(names.len()),
        _ => None,
    });
    assert_eq!(evicted.collect::<Vec<_>>()[0], 4_000 - DECLARED_TOOLS_MAX);
}

// accept: 40, accept: 55, accept: 56, accept: 64
#[tokio::test]
async fn a_thousand_tools_behind_nested_exclusive_facades_are_found_locked_and_left_with_short_texts() {
    let shelf = |number: usize| {
        let tools = (0..100).map(|tool| echo(&format!("tool_{}", 100 * number + tool)));
        let shelf = Facade::builder(format!("shelf_{number}"), "Has tools.")
            .tools(tools)
            .exclusive();
        Arc::new(shelf.build().unwrap()) as Arc<dyn Tool>
    };
    let store = Facade::builder("store", "Has shelves.")
        .tools((0..10).map(shelf))
        .build()
        .unwrap();
    let playbook = Playbook::new().with_lock("native#tool_777", Unlock::by("native#tool_700"));
    let script = calls([
        "tool_777", "store", "shelf_7", "tool_777", "tool_700", "tool_777", "tool_123", "mail", "shelf_1",
    ]);
    let script = Arc::new(script.answer("one").call("mail", json!({})).answer("two"));
    let builder = Conversation::builder()
        .tool(store)
        .tools([echo("mail")])
        .strategy(playbook);
    let mut conversation = builder.model(script.clone()).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("call `store`, then `shelf_7` first, then `tool_777`"),
        "{}",
        results[0]
    );
    assert!(results[3].contains("call `tool_700` first"), "{}", results[3]);
    assert_eq!(results[4..6], ["tool_700", "tool_777"]);
    assert!(
        results[6].contains("is inside `shelf_1`") || results[6].contains("shelf_1"),
        "{}",
        results[6]
    );
    for locked in [&results[7], &results[8]] {
        assert!(
            locked.contains("`shelf_7` is open") && locked.contains("`tool_700`"),
            "{locked}"
        );
        assert!(locked.len() < 1_000, "{} bytes: {locked}", locked.len());
    }
    assert!(declared(&script).iter().all(|count| *count <= DECLARED_TOOLS_MAX));
    assert_eq!(
        tool_results(&conversation.run("again").await.unwrap().history)
            .last()
            .unwrap(),
        "mail"
    );
}

// accept: 38, accept: 40, accept: 80, accept: 129
#[tokio::test]
async fn a_thousand_entities_share_one_guarded_method_which_acts_on_the_newest_instance() {
    let ids = || (0..1_000).map(|id| id.to_string()).collect::<Vec<_>>();
    let add = |id: &str| ("cart_add", json!({"item": "pen", "cart_id": id}));
    let builder = || {
        let latest = toolwit_core::NativeEntity::latest_wins;
        Conversation::builder().tools([opens("open", ids(), latest), opens("reload", ids(), latest)])
    };
    let script = || {
        ScriptedModel::new()
            .turn(together([("open", json!({})), add("7")]))
            .turn(together([add("7"), ("reload", json!({})), add("7"), add("999")]))
    };
    let free = results(builder(), script()).await;
    assert_eq!(
        [&free[1], &free[2], &free[4], &free[5]],
        ["open,pen", "open,pen,pen", "reload,pen", "reload,pen"]
    );
    let guarded = builder().decorate(ToolSelector::later("native#cart.add"), denial());
    let guarded = results(guarded, script()).await;
    assert!(
        [1, 2, 4, 5].iter().all(|at| guarded[*at].contains(DENIED)),
        "{guarded:?}"
    );
}
