//! Tools that are found in a plugin directory while a conversation runs.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::injection::{TOOL_GUIDANCE, ToolSearch};
use crate::plugin::{CodeCachePlace, Runtime, RuntimeOptions, Scope};
use crate::registry::Registry;

/// A component whose function `export` gives its first argument back.
fn put(directory: &Path, plugin: &str, export: &str, use_case: &str) {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (param i32) (result i32) local.get 0))
            (core instance $i (instantiate $m))
            (func (export "{export}") (param "a" s32) (result s32) (canon lift (core func $i "f"))))"#
    );
    fs::write(
        directory.join(plugin).with_extension("wasm"),
        wat::parse_str(text).unwrap(),
    )
    .unwrap();
    fs::write(
        directory.join(plugin).with_extension("toml"),
        format!("use_case = {use_case:?}"),
    )
    .unwrap();
}

async fn shelf(directory: &Path) -> ToolSearch {
    ToolSearch::new(registry(directory).await, Scope::new())
}

async fn registry(directory: &Path) -> Registry {
    put(
        directory,
        "weather",
        "get-forecast",
        "When the user asks for the weather",
    );
    put(
        directory,
        "mail",
        "send-email",
        "When the user wants to write to somebody",
    );
    put(directory, "music", "play-song", "When the user wants to hear music");
    let options = RuntimeOptions {
        code_cache: CodeCachePlace::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    Registry::scan(&runtime, &[directory.to_owned()]).await.unwrap()
}

// accept: 103, accept: 110, accept: 125, accept: 131, accept: 135
#[tokio::test]
async fn what_the_user_says_brings_the_tool_before_the_model_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let search = shelf(directory.path()).await;
    let (builder, stage) = Stage::set([call([("get_forecast", json!({"a": 21}))]), say("21 degrees")]);
    let builder = builder.tool_search(search).system("You are a farmer.");
    let mut conversation = builder.build().unwrap();
    let outcome = conversation.run("Tell me what the weather is like").await.unwrap();
    assert_eq!(outcome.text(), "21 degrees");
    let shown = stage.shown.lock().unwrap().clone();
    assert_eq!(shown[0].names, ["search_tools", "get_forecast"]);
    let told = format!("You are a farmer.\n\n{TOOL_GUIDANCE}");
    assert_eq!(shown[0].messages[0].content(), told);
    assert!(shown[0].serialised[1].contains("When the user asks for the weather"));
    assert_eq!(shown[1].messages.last().unwrap().content(), "21");
}

// accept: 110, accept: 116
#[tokio::test]
async fn the_model_finds_a_tool_calls_it_and_is_told_not_to_search_again() {
    let directory = tempfile::tempdir().unwrap();
    let search = shelf(directory.path()).await;
    let query = json!({"query": "sending emails"});
    let (builder, stage) = Stage::set([
        call([("search_tools", query.clone())]),
        call([("search_tools", query)]),
        call([("send_email", json!({"a": 7}))]),
        say("done"),
    ]);
    let mut conversation = builder.tool_search(search).build().unwrap();
    conversation.run("Please go on").await.unwrap();
    let shown = stage.shown.lock().unwrap().clone();
    let last = |at: usize| shown[at].messages.last().unwrap().content().to_owned();
    assert_eq!(shown[0].names, ["search_tools"], "nothing fits what the user said");
    assert_eq!(shown[1].names, ["search_tools", "send_email"]);
    assert!(last(1).contains("these are your tools now"), "{}", last(1));
    assert_eq!(shown[2].serialised, shown[1].serialised, "no tool is added twice");
    assert!(last(2).contains("already there"), "{}", last(2));
    assert_eq!(last(3), "7");
}

// accept: 110
#[tokio::test]
async fn a_tool_that_the_conversation_may_not_use_is_neither_found_nor_callable() {
    let directory = tempfile::tempdir().unwrap();
    let registry = registry(directory.path()).await;
    let search = |may_use: fn(&str) -> bool| ToolSearch::among(registry.clone(), Scope::new(), may_use);
    for (search, is_there) in [
        (search(|_| true), true),
        (search(|id| !id.starts_with("weather#")), false),
    ] {
        let calls = [
            call([("search_tools", json!({"query": "weather forecast"}))]),
            call([("get_forecast", json!({"a": 21}))]),
            say("done"),
        ];
        let (builder, stage) = Stage::set(calls);
        let builder = builder.tool_search(search).guidance("Be brief.");
        builder
            .build()
            .unwrap()
            .run("the weather forecast, please")
            .await
            .unwrap();
        let shown = stage.shown.lock().unwrap().clone();
        assert_eq!(shown[0].messages[0].content(), "Be brief.");
        assert_eq!(shown[2].names.contains(&"get_forecast".to_owned()), is_there);
        assert_eq!(shown[2].messages.last().unwrap().content() == "21", is_there);
        let found = shown[1].messages.last().unwrap().content().to_owned();
        assert_eq!(found.contains("weather#get-forecast"), is_there, "{found}");
    }
}

// accept: 114
#[tokio::test]
async fn a_found_tool_never_takes_the_name_of_a_static_one() {
    let directory = tempfile::tempdir().unwrap();
    let search = shelf(directory.path()).await;
    let own = NativeTool::new("get_forecast", "Mine", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text("mine"))
    });
    let (builder, stage) = Stage::set([call([("get_forecast", json!({}))]), say("done")]);
    let mut conversation = builder.tool_search(search).tool(own.unwrap()).build().unwrap();
    conversation.run("weather").await.unwrap();
    let shown = stage.shown.lock().unwrap().clone();
    assert_eq!(shown[0].names.len(), 3, "{:?}", shown[0].names);
    assert_eq!(shown[1].messages.last().unwrap().content(), "mine");
}
