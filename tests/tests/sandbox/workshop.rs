//! A guest that is written with the macros and helpers of the Rust SDK, without a WIT file.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwit::sandbox::{Annotations, Inspection, PackageContext, lint};
use toolwit::tool::{MemoryBlackboard, ToolCaller};
use toolwit::{NativeTool, ToolContext, ToolResult, ToolSet};
use toolwit_tests::{Conversation, Guests};

const PACKAGE: PackageContext<'static> = PackageContext {
    name: "workshop",
    adjacent_wit: None,
};

/// Starts a conversation with grants for the guest. The directory has the grants file.
async fn workshop(grants: &str) -> (Conversation, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grants.toml");
    let text = format!("version = 1\n[[grant]]\nplugin = \"workshop\"\nany-version = true\n{grants}\n");
    std::fs::write(&file, text).unwrap();
    let guests = Guests::with(|options| options.grants_file = Some(file));
    (Conversation::over(&[&guests.rust("workshop").await]), directory)
}

/// Calls a tool that must fail, and returns the reason: the tool's own, or the missing grant.
async fn failure_of(workshop: &mut Conversation, tool: &str, arguments: Value) -> String {
    match workshop.call(tool, arguments).await {
        Ok(result) => {
            assert!(result.is_error(), "{result:?}");
            result.for_llm
        }
        Err(error) => error.to_string(),
    }
}

fn part(name: &str, price: u64) -> Value {
    json!({"name": name, "price": price, "condition": null, "type": "other"})
}

#[tokio::test]
async fn doc_comments_are_the_descriptions_of_tools_entities_and_parameters() {
    let bytes = Guests::rust_bytes("workshop").await;
    let inspection = Inspection::from_bytes(&bytes, PACKAGE).unwrap();
    let description = |name: &str| {
        let tool = inspection.tools.iter().find(|tool| tool.name() == name);
        tool.unwrap_or_else(|| panic!("no `{name}`")).description.clone()
    };
    assert_eq!(
        description("millimetres"),
        "Translate a number of inches to millimetres.\n\n- `inches`: The number of inches."
    );
    assert!(
        description("sum").starts_with("Sum up the prices of parts.\n\n- `parts`: The parts, in any order."),
        "{}",
        description("sum")
    );
    let findings = lint(&bytes, PACKAGE, &Annotations::default()).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

#[tokio::test]
async fn arguments_and_results_of_every_type_are_converted() {
    let (mut workshop, _directory) = workshop("").await;
    let all = json!({"name": "rim", "price": 1000, "condition": "worn_out", "type": {"chain": [100, 1.5]}});
    assert_eq!(workshop.value("same_part", json!({"part": all})).await, all);
    let parts = json!([part("a", 1000), {"name": "b", "price": 500, "type": {"wheel": 28}}]);
    assert_eq!(workshop.value("sum", json!({"parts": parts})).await, json!(1500));
    assert_eq!(
        workshop.value("sum", json!({"parts": parts, "discount": 10})).await,
        json!(1350)
    );
    let names = json!({"names": ["rim", "chain"], "query": "ch"});
    assert_eq!(workshop.value("find", names).await, json!([[2, "chain"]]));
    assert_eq!(workshop.value("millimetres", json!({"inches": 2})).await, json!(50.8));
}

#[tokio::test]
async fn tool_of_eight_lines_and_entity_of_fifteen_import_only_what_they_use() {
    let bytes = Guests::rust_bytes("counters").await;
    let inspection = Inspection::from_bytes(&bytes, PACKAGE).unwrap();
    let imports: Vec<&str> = inspection.imports.iter().map(|import| import.name.as_str()).collect();
    let is_unused = |name: &&str| name.starts_with("toolwit:") || name.starts_with("wasi:http");
    assert!(!imports.is_empty() && !imports.iter().any(is_unused), "{imports:?}");
    assert!(
        lint(&bytes, PACKAGE, &Annotations::default()).unwrap().is_empty(),
        "both packages have docs"
    );

    let guests = Guests::new();
    let mut counters = Conversation::over(&[&guests.rust("counters").await]);
    assert_eq!(
        counters.value("greet", json!({"name": "Ada"})).await,
        json!("Hello, Ada!")
    );
    let refused = counters.call("greet", json!({"name": " "})).await.unwrap();
    assert!(
        refused.is_error() && refused.for_llm.contains("the name is empty"),
        "{refused:?}"
    );
    counters.value("counter_new", json!({"start": 40})).await;
    assert_eq!(
        counters
            .value("counter_add", json!({"counter_id": "1", "amount": 1}))
            .await,
        json!(41)
    );
    assert_eq!(
        counters
            .value("counter_add", json!({"counter_id": "1", "amount": 1}))
            .await,
        json!(42)
    );
}

#[tokio::test]
async fn struct_with_methods_is_an_entity_that_keeps_its_state_until_it_is_consumed() {
    let (mut workshop, _directory) = workshop("").await;
    let repair = workshop.value("repair_new", json!({"part": part("rim", 1000)})).await;
    assert_eq!((&repair["type"], &repair["id"]), (&json!("repair"), &json!("r-1")));
    assert_eq!(
        workshop
            .value("repair_r1_add", json!({"part": part("chain", 50)}))
            .await,
        json!(2)
    );
    let missing = workshop
        .call("repair_r1_remove", json!({"name": "bell"}))
        .await
        .unwrap();
    assert!(missing.is_error() && missing.for_llm.contains("bell"), "{missing:?}");
    assert_eq!(workshop.value("repair_r1_parts", json!({})).await[1], part("chain", 50));

    let none = workshop.value("repair_without_parts", json!({"bicycle": false})).await;
    assert_eq!(none, Value::Null);
    workshop.value("repair_without_parts", json!({"bicycle": true})).await;
    let compared = json!({"first": "r-2", "second": "r-1"});
    assert_eq!(workshop.value("is_cheaper", compared).await, json!(true));

    let finished = workshop.call("finish", json!({"repair": "r-1"})).await.unwrap();
    assert_eq!(finished.for_llm, "Repair r-1 costs 1050 cents.");
    assert_eq!(finished.for_user.as_deref(), Some("Your bicycle is ready."));
    assert_eq!(finished.artifacts[0].value[0]["name"], "rim");
    let consumed = workshop.call("finish", json!({"repair": "r-1"})).await;
    assert!(consumed.is_err(), "{consumed:?}");
}

#[tokio::test]
async fn helpers_use_what_is_granted_and_report_what_is_not() {
    let shout = NativeTool::new(
        "shout",
        "Shouts.",
        json!({"type": "object"}),
        |arguments, _| async move {
            Ok(ToolResult::text(
                arguments["text"].as_str().unwrap_or_default().to_uppercase(),
            ))
        },
    );
    let shout = shout.unwrap();
    let mut tools = ToolSet::new();
    tools.add(Arc::new(shout));
    let context = ToolContext::new()
        .with("tenant", "acme")
        .with_blackboard(Arc::new(MemoryBlackboard::default()))
        .with_tools(Arc::new(tools) as Arc<dyn ToolCaller>);

    let grants = "context = [\"tenant\"]\nblackboard = \"read-write\"\ntools = [\"native#shout\"]";
    let (mut granted, _directory) = workshop(grants).await;
    granted.context = context.clone();
    let announced = granted.call("announce", json!({"text": "hello"})).await.unwrap();
    assert_eq!(announced.artifacts[0].value, json!("acme"));
    let price = granted.value("remember", json!({"name": "rim", "price": 5})).await;
    assert_eq!(price, json!(5));
    let relayed = granted
        .call("relay", json!({"tool": "native#shout", "text": "hey"}))
        .await
        .unwrap();
    assert_eq!(relayed.for_llm, "HEY");

    let (mut refused, _directory) = workshop("").await;
    refused.context = context;
    for (tool, arguments, reason) in [
        ("announce", json!({"text": "hello"}), "there is no tenant"),
        ("remember", json!({"name": "rim", "price": 5}), "it is not granted"),
        ("relay", json!({"tool": "native#shout", "text": "hey"}), "native#shout"),
    ] {
        let text = failure_of(&mut refused, tool, arguments).await;
        assert!(text.contains(reason), "{tool}: {text}");
    }
}

/// Answers one request with JSON, and returns the request.
async fn answer_request(listener: &TcpListener, status: &str, body: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = String::new();
    while !request.contains("\"rim\"") {
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).await.unwrap();
        assert_ne!(length, 0, "the request ended early: {request}");
        request.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    request
}

#[tokio::test]
async fn http_client_sends_json_to_a_granted_host_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let arguments = json!({"url": format!("http://127.0.0.1:{port}/parts"), "parts": [part("rim", 1000)]});

    let (mut denied, _directory) = workshop("").await;
    let text = failure_of(&mut denied, "publish", arguments.clone()).await;
    assert!(text.contains("127.0.0.1"), "{text}");

    let grant = format!(
        "http = [{{ host = \"127.0.0.1\", methods = [\"POST\"], scheme = \"http\", port = {port}, addresses = [\"127.0.0.1\"] }}]"
    );
    let (mut granted, _directory) = workshop(&grant).await;
    let (request, names) = tokio::join!(
        answer_request(&listener, "200 OK", "[\"rim\"]"),
        granted.value("publish", arguments.clone())
    );
    assert_eq!(names, json!(["rim"]));
    let head = request.to_ascii_lowercase();
    assert!(head.starts_with("post /parts?kind=part http/1.1\r\n"), "{request}");
    assert!(head.contains("x-workshop: 1\r\n") && head.contains("content-type: application/json\r\n"));

    let (_, text) = tokio::join!(
        answer_request(&listener, "409 Conflict", "they are published"),
        failure_of(&mut granted, "publish", arguments)
    );
    assert!(text.contains("returned status 409: they are published"), "{text}");
}
