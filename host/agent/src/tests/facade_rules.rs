//! Exclusive facades, nested facades, facades without tools, and unused tools that are folded again.

use super::unfolding::{database, facade, files_facade, invoke, parse_json, run_steps};
use super::*;
use crate::injection::{EntityTools, Facade, StrategyChain, Unfolding};
use toolwit_core::limits::FACADE_DEPTH_MAX;

// accept: 55
#[tokio::test]
async fn an_exclusive_facade_locks_other_tools_until_the_turn_ends() {
    let mood = Facade::builder("mood", "Sets the mood.").tools([echo("formal")]);
    let mood = mood.exclusive().build().unwrap();
    let (builder, model) = TestModel::playing([
        call([("look", json!({})), ("mood", json!({})), ("later", json!({}))]),
        call([("look", json!({})), ("formal", json!({})), ("mood", json!({}))]),
        reply("ok"),
        call([("look", json!({}))]),
        reply("ok"),
    ]);
    let mut conversation = builder.tools([echo("look")]).tool(mood).build().unwrap();
    let first = conversation.run("go").await.unwrap();
    let results = tool_results(&first.history);
    assert_eq!(results[0], "look", "the facade was not open yet");
    assert!(
        results[3].contains("`look` cannot be called now") && results[3].contains("`formal`"),
        "{}",
        results[3]
    );
    assert_eq!(results[4], "formal");
    assert!(
        results[5].contains("available_tools"),
        "the facade itself can be called"
    );
    assert_eq!(
        model.request(2).names,
        ["look", "mood", "formal", "mood_context"],
        "locked tools stay declared"
    );
    let guided = &model.events_named("call_guided")[0];
    assert_eq!(guided["name"], "look");
    let second = conversation.run("again").await.unwrap();
    assert_eq!(
        *tool_results(&second.history).last().unwrap(),
        "look",
        "the lock ends with the turn"
    );
}

// accept: 56
#[tokio::test]
async fn a_facade_can_contain_tools_and_facades() {
    let admin = Facade::builder("admin", "Administers.")
        .tools([echo("status")])
        .tool(facade("users", &["create_user"]))
        .build()
        .unwrap();
    let (outcome, model) = run_steps(
        [admin],
        [
            invoke("create_user"),
            invoke("admin"),
            invoke("users"),
            invoke("create_user"),
            reply("ok"),
        ],
    )
    .await;
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("call `admin`, then `users` first"),
        "{}",
        results[0]
    );
    assert_eq!(results[3], "create_user");
    assert_eq!(
        model.request(3).names,
        [
            "admin",
            "status",
            "users",
            "admin_context",
            "create_user",
            "users_context"
        ]
    );
}

/// Returns the facade `level_{depth}`. It contains the facade of the next level, without an end.
fn endless_facade(depth: usize) -> Facade {
    let facade = Facade::builder(format!("level_{depth}"), "Opens the next level.");
    facade
        .tools_from_context(move |_| Ok(vec![Arc::new(endless_facade(depth + 1)) as Arc<dyn Tool>]))
        .build()
        .unwrap()
}

// accept: 40, accept: 57
#[tokio::test]
async fn a_facade_beyond_the_depth_limit_is_withheld() {
    let steps = (0..=FACADE_DEPTH_MAX)
        .map(|depth| invoke(&format!("level_{depth}")))
        .chain([reply("ok")]);
    let (outcome, model) = run_steps([endless_facade(0)], steps.collect::<Vec<_>>()).await;
    let withheld = &model.events_named("tool_withheld");
    assert_eq!(withheld.len(), 1, "{withheld:?}");
    assert_eq!(withheld[0]["name"], format!("level_{FACADE_DEPTH_MAX}"));
    let last = parse_json(tool_results(&outcome.history)[FACADE_DEPTH_MAX]);
    assert_eq!(
        (&last["available_tools"], &last["note"]),
        (
            &json!([]),
            &json!("its tools cannot be used: it is nested in 8 facades, which is the limit")
        )
    );
}

/// Returns a facade that contains itself.
fn circular_facade() -> Facade {
    let facade = Facade::builder("circle", "Contains itself.");
    facade
        .tools_from_context(|_| Ok(vec![Arc::new(circular_facade()) as Arc<dyn Tool>, echo("way_out")]))
        .build()
        .unwrap()
}

// accept: 40
#[tokio::test]
async fn a_facade_that_contains_itself_is_not_nested_in_itself() {
    let (_, model) = run_steps([circular_facade()], [invoke("circle"), reply("ok")]).await;
    assert_eq!(model.request(1).names, ["circle", "way_out", "circle_context"]);
    assert_eq!(
        model.events_named("tool_withheld")[0]["reason"],
        "it would be nested in itself"
    );
}

// accept: 60
#[tokio::test]
async fn a_facade_without_tools_changes_nothing() {
    let (outcome, model) = run_steps([facade("empty", &[])], [invoke("empty"), reply("ok")]).await;
    assert_eq!(model.request(1).names, ["empty"]);
    assert!(tool_results(&outcome.history)[0].contains("has no tools"));
}

// accept: 57
#[tokio::test]
async fn unused_tools_are_folded_between_turns_and_declared_again_when_called() {
    let (builder, model) = TestModel::playing([
        invoke("db"),
        invoke("query"),
        reply("ok"),
        invoke("insert"),
        reply("ok"),
    ]);
    let strategies = StrategyChain::new()
        .then(Unfolding::new().with_refolding())
        .then(EntityTools);
    let mut conversation = builder.tool(database()).strategies(strategies).build().unwrap();
    conversation.run("one").await.unwrap();
    assert_eq!(model.request(2).names.len(), 4, "no tools are folded within a turn");
    let second = conversation.run("two").await.unwrap();
    assert_eq!(
        model.request(3).names,
        ["db", "query"],
        "tools with calls in the history stay declared"
    );
    assert_eq!(*tool_results(&second.history).last().unwrap(), "insert");
    assert_eq!(model.request(4).names, ["db", "query", "insert"]);
    assert_eq!(
        model.events_named("tools_folded")[0]["names"],
        json!(["insert", "db_context"])
    );
    let events = model.events();
    let names: Vec<_> = visible_tools(&events).iter().map(ToString::to_string).collect();
    assert_eq!(names, model.request(4).names);
}

// accept: 54
#[tokio::test]
async fn the_context_tool_describes_the_tools_that_a_later_call_reveals() {
    let described = |answer: &str| -> Vec<String> {
        let tools = parse_json(answer)["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let open = |category: &str| call([("files", json!({"category": category}))]);
    let steps = [
        open("read"),
        invoke("files_context"),
        open("write"),
        invoke("files_context"),
        open("read"),
        invoke("files_context"),
        reply("ok"),
    ];
    let (outcome, model) = run_steps([files_facade()], steps).await;
    let answers = tool_results(&outcome.history);
    let all = ["read_file", "list_directory", "write_file"];
    assert_eq!(described(answers[1]), all[..2]);
    assert_eq!(described(answers[3]), all);
    assert_eq!(described(answers[5]), all, "a repeated call hides nothing");
    assert_eq!(model.events_named("tools_redefined").len(), 0, "its declaration stays");
}
