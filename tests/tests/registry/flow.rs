//! From a message to the result of a tool that a search found.

use std::time::Duration;

use serde_json::json;
use toolwit::limits::SEARCH_WALL_MAX;
use toolwit::limits::{EngineLimits, LimitRequest, effective};
use toolwit::model::ScriptedModel;
use toolwit::registry::WatchOptions;
use toolwit::{Exposure, NativeTool, ToolResult};
use toolwit_tests::Guests;

use crate::place::{Place, adder, until};

/// A component with the tool `scrape-page`, which returns the length of the URL.
const SCRAPER: &str = r#"(component
    (core module $m
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
        (func (export "scrape") (param i32 i32) (result i32) local.get 1))
    (core instance $i (instantiate $m))
    (func (export "scrape-page") (param "url" string) (result u32)
        (canon lift (core func $i "scrape") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#;

const SCRAPER_MANIFEST: &str = r#"
category = "web-scraping"
use_case = "When the user wants data out of a web page"
limitations = "Reads one page, and follows no links"
examples = ["extract the headlines of a news site"]
"#;

// accept: 103, accept: 110, accept: 112, accept: 125, accept: 126, accept: 131
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_package_is_used_in_the_next_turn_without_a_restart() {
    let place = Place::new();
    for number in 0..30 {
        place.put(&format!("adder{number}"), &adder(number));
    }
    let host = place.host().watch(WatchOptions::default()).build().await.unwrap();
    assert_eq!(host.exposure(), Exposure::Search, "sixty tools are too many to show");
    // A native tool of the embedder.
    let own = NativeTool::new(
        "remember",
        "Remembers something",
        json!({"type": "object"}),
        |_, _| async { Ok(ToolResult::text("remembered")) },
    );
    let model = std::sync::Arc::new(
        ScriptedModel::new()
            .answer("I cannot do that.")
            .call("scrape_page", json!({"url": "https://news.example"}))
            .answer("The page has {{result}} letters in its address."),
    );
    let mut conversation = host
        .conversation()
        .model(model.clone())
        .tool(own.unwrap())
        .build()
        .unwrap();
    let first = conversation.run("I am building a news aggregator").await.unwrap();
    assert_eq!(first.text(), "I cannot do that.");

    // A package is added while the host runs.
    place.put_bytes("scraper.toml", SCRAPER_MANIFEST.as_bytes());
    place.put("scraper", SCRAPER);
    until(host.live_registry(), |registry| registry.package("scraper").is_some()).await;

    let outcome = conversation
        .run("Help me extract data from https://news.example")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "The page has 20 letters in its address.");
    let requests = model.requests();
    let names = |at: usize| -> Vec<&str> { requests[at].tools.iter().map(|name| name.as_str()).collect() };
    assert!(!names(0).contains(&"scrape_page"), "{:?}", names(0));
    for always in ["search_tools", "remember", "scrape_page"] {
        assert!(names(1).contains(&always), "{:?}", names(1));
    }
    let scraper = conversation
        .tools()
        .iter()
        .find(|tool| tool.name.as_str() == "scrape_page");
    let description = &scraper.unwrap().definition.description;
    for part in ["data out of a web page", "follows no links", "headlines"] {
        assert!(description.contains(part), "{description}");
    }
}

// accept: 112, accept: 117, accept: 121
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hit_that_cannot_be_loaded_is_omitted() {
    let place = Place::new();
    // Linking fails: the import has another type than the host's function.
    let wrong = r#"(component
        (import "wasi:cli/environment@0.2.0" (instance (export "get-environment" (func (result u32)))))
        (core module $m (func (export "add") (param i32 i32) (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func (export "add-all") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;
    place.put("wrong", wrong);
    place.put("adder", &adder(1));
    let host = place.host().exposure(Exposure::Search).build().await.unwrap();
    let model = std::sync::Arc::new(
        ScriptedModel::new()
            .call("search_tools", json!({"query": "add numbers"}))
            .call("add", json!({"a": 1, "b": 2}))
            .answer("{{result}}"),
    );
    let mut conversation = host.conversation().model(model.clone()).build().unwrap();
    let outcome = conversation.run("Go on").await.unwrap();
    assert_eq!(outcome.text(), "3");
    let requests = model.requests();
    assert!(requests[0].tools.iter().all(|name| name.as_str() == "search_tools"));
    let after: Vec<_> = requests[1].tools.iter().map(|name| name.as_str()).collect();
    assert!(after.contains(&"add") && !after.contains(&"add_all"), "{after:?}");
}

// accept: 113, accept: 114
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_tools_are_all_visible_under_unique_names() {
    let place = Place::new();
    place.put("one", &adder(1));
    place.put("two", &adder(2));
    let host = place.host().build().await.unwrap();
    assert_eq!(host.exposure(), Exposure::Flat);
    let own = NativeTool::new("add", "Mine", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text("mine"))
    });
    let model = ScriptedModel::new().call("add", json!({})).answer("{{result}}");
    let mut conversation = host.conversation().tool(own.unwrap()).model(model).build().unwrap();
    let names: Vec<String> = conversation.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(
        names,
        ["add", "one_add", "version", "two_add", "two_version"],
        "{names:?}"
    );
    for name in &names {
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name}"
        );
    }
    assert_eq!(conversation.run("Add").await.unwrap().text(), "mine");
}

// accept: 119
#[test]
fn default_time_limits_are_as_documented() {
    let (engine, none) = (EngineLimits::default(), LimitRequest::default());
    assert_eq!(engine.load_wall_max, Duration::from_secs(120));
    assert_eq!(SEARCH_WALL_MAX, Duration::from_secs(5));
    let usual = effective(&engine, &none, &none);
    assert_eq!(usual.wall_max, Duration::from_secs(30));
    let long = effective(&engine, &none.clone().with_wall_max(Duration::from_secs(300)), &none);
    assert_eq!(
        long.wall_max,
        Duration::from_secs(300),
        "the operator can allow a long-running tool"
    );
    let greedy = effective(&engine, &none, &none.clone().with_wall_max(Duration::from_secs(300)));
    assert_eq!(
        greedy.wall_max,
        Duration::from_secs(30),
        "a plugin cannot raise its own limit"
    );
}

// accept: 37
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifest_sets_the_rebinding_of_an_entity() {
    let bytes = Guests::rust_bytes("museum").await;
    for (rebind, expected) in [("keep", 3), ("latest", 1)] {
        let place = Place::new();
        place.put_bytes(
            "museum.toml",
            format!("[entities.piece]\nrebind = \"{rebind}\"\n").as_bytes(),
        );
        place.put_bytes("museum.wasm", &bytes);
        let host = place.host().build().await.unwrap();
        let find = || json!({"id": "p-1"});
        let model = ScriptedModel::new()
            .call("piece_find", find())
            .call("piece_p1_look", json!({}))
            .call("piece_p1_look", json!({}))
            .call("piece_find", find())
            .call("piece_p1_look", json!({}))
            .answer("{{result}}");
        let outcome = host.conversation().model(model).run("Look at it").await.unwrap();
        assert_eq!(outcome.text(), expected.to_string(), "{rebind}");
    }
}

// attack: I4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_call_id_in_two_conversations_is_two_calls() {
    let place = Place::new();
    place.put("adder", &adder(1));
    let host = place.host().build().await.unwrap();
    let add = async |a: u32| {
        // Scripted models number their calls from 1, so both conversations use the same ids.
        let model = ScriptedModel::new()
            .call("add", json!({"a": a, "b": 1}))
            .answer("{{result}}");
        let outcome = host.conversation().model(model).run("Add").await;
        outcome.unwrap().text().to_owned()
    };
    let (one, other) = tokio::join!(add(1), add(41));
    assert_eq!((one.as_str(), other.as_str()), ("2", "42"));
}
