//! From a message to the result of a tool that a search found.

use std::time::Duration;

use serde_json::{Value, json};
use toolwit::build::{Build, Silent};
use toolwit::limits::{EngineLimits, LimitOverrides, SEARCH_WALL_MAX, effective};
use toolwit::model::ScriptedModel;
use toolwit::registry::{Query, WatchOptions};
use toolwit::store::MemoryStore;
use toolwit::{Exposure, NativeTool, Scope, ToolContext, ToolResult};
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
            .call("search_tools", json!({"need": "add numbers"}))
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

// accept: 112, accept: 117
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_search_takes_the_next_best_tool_for_one_that_cannot_be_loaded() {
    let place = Place::new();
    let unloadable = r#"(component
        (import "wasi:cli/environment@0.2.0" (instance (export "get-environment" (func (result u32)))))
        (core module $m (func (export "add") (param i32 i32) (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func (export "add-all") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;
    for number in 0..5 {
        place.put(&format!("broken{number}"), unloadable);
    }
    let working = adder(1).replace(r#"(export "add") (param "a""#, r#"(export "add-up") (param "a""#);
    place.put("sound1", &working);
    let host = place.host().exposure(Exposure::Search).build().await.unwrap();
    let model = std::sync::Arc::new(ScriptedModel::new().answer("done"));
    let mut conversation = host.conversation().model(model.clone()).build().unwrap();
    conversation.run("Add").await.unwrap();
    let requests = model.requests();
    let names: Vec<_> = requests[0].tools.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["search_tools", "add_up"], "five better hits cannot be loaded");
}

// accept: 122, accept: 136
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_move_ranks_in_the_running_process_and_errors_of_the_tool_break_nothing() {
    // `divide` returns an error for 0 and traps for 1.
    let divider = r#"(component
        (core module $m
            (memory (export "memory") 1)
            (func (export "divide") (param i32) (result i32)
                (if (i32.eq (local.get 0) (i32.const 1)) (then unreachable))
                (i32.store8 (i32.const 8) (i32.eqz (local.get 0)))
                (i32.store (i32.const 12) (i32.const 7))
                i32.const 8))
        (core instance $i (instantiate $m))
        (func (export "divide") (param "by" u32) (result (result u32 (error u32)))
            (canon lift (core func $i "divide") (memory (core memory $i "memory")))))"#;
    let place = Place::new();
    place.put("alpha", divider);
    place.put("beta", divider);
    let host = place.host().build().await.unwrap();
    let found = || -> Vec<String> {
        let hits = host.registry().search(&Query::new("divide"), |_| true);
        hits.into_iter().map(|hit| hit.id).collect()
    };
    let call = async |plugin: &str, by: u32| {
        let tool = host
            .registry()
            .tool(&format!("{plugin}#divide"), &Scope::new())
            .unwrap();
        let arguments = json!({"by": by}).as_object().unwrap().clone();
        tool.call(arguments, &ToolContext::new()).await
    };
    assert_eq!(found(), ["alpha#divide", "beta#divide"], "ties are sorted by name");
    assert!(call("beta", 0).await.unwrap().is_error());
    assert_eq!(
        found(),
        ["beta#divide", "alpha#divide"],
        "an error of its own counts as a use"
    );
    let health = || {
        host.registry()
            .store()
            .health()
            .unwrap()
            .into_values()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (health()[0].uses, health()[0].is_broken(), health()[0].checked_ms),
        (1, false, 0)
    );
    call("beta", 1).await.unwrap_err();
    assert_eq!(found(), ["alpha#divide", "beta#divide"], "a trap breaks it");
    assert!(call("beta", 0).await.unwrap().is_error());
    assert_eq!(found(), ["alpha#divide", "beta#divide"], "an error does not heal it");
    assert!(!call("beta", 2).await.unwrap().is_error());
    assert_eq!(found(), ["beta#divide", "alpha#divide"], "a success does");
    assert_eq!(host.registry().store().health().unwrap().len(), 1);
}

// accept: 30, accept: 110, accept: 126
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn question_of_the_readme_finds_the_tool_that_leads_to_the_method() {
    let place = Place::new();
    let project = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/customers");
    let built = Build::new(project).run(&Silent).await.unwrap();
    place.put_bytes("customers.wasm", &std::fs::read(built.component).unwrap());
    let store: std::sync::Arc<MemoryStore> = std::sync::Arc::default();
    // The second host takes the package, with its methods, from the store.
    for _ in 0..2 {
        let host = place
            .host()
            .store(store.clone())
            .exposure(Exposure::Search)
            .build()
            .await
            .unwrap();
        let model = std::sync::Arc::new(
            ScriptedModel::new()
                .call("search_customer", json!({"name": "John Smith"}))
                .call("customer_c123_get_average_spend", json!({}))
                .answer("{{result.amount}}"),
        );
        let mut conversation = host.conversation().model(model.clone()).build().unwrap();
        let outcome = conversation.run("What is John Smith's average spend?").await.unwrap();
        assert_eq!(outcome.text(), "450.00");
        let hits = host
            .registry()
            .search(&Query::new("calculate the total of an order"), |_| true);
        assert!(
            hits.iter().any(|hit| hit.name == "search_customer"),
            "a method of an entity that only a method returns: {hits:?}"
        );
    }
    let may_use = |id: &str| !id.ends_with("get-average-spend") && !id.ends_with("compare");
    let host = place.host().exposure(Exposure::Search).build().await.unwrap();
    let model = std::sync::Arc::new(ScriptedModel::new().answer("no"));
    let mut conversation = host.conversation_among(may_use).model(model.clone()).build().unwrap();
    conversation.run("What is the average spend?").await.unwrap();
    assert_eq!(model.requests()[0].tools.len(), 1, "{:?}", model.requests()[0].tools);
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
    let (engine, none) = (EngineLimits::default(), LimitOverrides::default());
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
        let mut answers = outcome
            .history
            .iter()
            .filter(|message| message.content().contains("looks"));
        let again: Value = serde_json::from_str(answers.next_back().unwrap().content()).unwrap();
        assert_eq!(
            again["looks"], 0,
            "a record that was fetched again is not stale: {again}"
        );
        let kept = if rebind == "keep" {
            json!({"title": "Piece p-1", "looks": 2})
        } else {
            Value::Null
        };
        assert_eq!(again["tools_act_on"], kept, "{rebind}: {again}");
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
