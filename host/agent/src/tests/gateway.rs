//! The gateway: the model calls all injected tools through one declared tool, `call_tool`.

use super::*;
use crate::injection::{Facade, Playbook, Unlock};
use crate::model::ToolDelivery;
use toolwit_core::{NativeEntity, NoArguments};

/// Returns the name and the arguments of a gateway call that calls the tool `name`.
fn through(name: &str, arguments: Value) -> (&str, Value) {
    let gateway_arguments = json!({"name": name, "arguments": arguments});
    ("call_tool", gateway_arguments)
}

fn database() -> Facade {
    let query = tool("query", |arguments, _| {
        Ok(ToolResult::text(format!("rows of {}", arguments["table"])))
    });
    Facade::builder("db", "Works with the database.")
        .tools([query])
        .build()
        .unwrap()
}

// accept: 55, accept: 92
#[tokio::test]
async fn declared_tools_never_change_and_results_describe_injected_tools() {
    let (builder, model) = TestModel::playing([
        call([("db", json!({}))]),
        call([through("query", json!({"table": "orders"}))]),
        call([
            through("query", json!("{\"table\": 1}")),
            ("query", json!({"table": 2})),
        ]),
        reply("ok"),
        reply("ok"),
    ]);
    let mut conversation = builder
        .tool(database())
        .delivery(ToolDelivery::Gateway)
        .build()
        .unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_valid(&outcome.history);
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("with `call_tool`")
            && results[0].contains("- `query`: Is query. Arguments: {\"type\":\"object\"}"),
        "{}",
        results[0]
    );
    assert_eq!(results[1..], ["rows of \"orders\"", "rows of 1", "rows of 2"]);
    conversation.run("again").await.unwrap();
    assert_eq!(model.request(0).names, ["db", "call_tool", "read_result"]);
    for inference in 1..model.request_count() {
        assert_eq!(
            model.request(inference).serialised_tools,
            model.request(0).serialised_tools
        );
    }
    let injected = &model.events_named("tools_injected")[0];
    let described_tools = results[0].split_once("`arguments`:\n").unwrap().1;
    assert_eq!(
        injected["prompt_bytes"],
        described_tools.len(),
        "the cost of the injection is the size of the description"
    );
    assert_eq!(outcome.usage.injected_bytes, described_tools.len() as u64);
    assert_eq!(
        model.events_named("tool_started")[1]["name"],
        "query",
        "the event names the called tool instead of the gateway"
    );
    let events = model.events();
    assert!(
        visible_tools(&events).iter().any(|name| name.as_str() == "query"),
        "an injected tool is visible although it is not declared"
    );
}

#[tokio::test]
async fn invalid_gateway_calls_are_refused() {
    let steps = [
        call([
            ("call_tool", json!({})),
            through("nowhere", json!({})),
            through("call_tool", json!({})),
            through("db", json!([1])),
        ]),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let outcome = builder
        .tool(database())
        .delivery(ToolDelivery::Gateway)
        .run("go")
        .await
        .unwrap();
    assert_valid(&outcome.history);
    let results = tool_results(&outcome.history);
    assert!(
        results[0].contains("/name: it must be the name of a tool") && results[0].contains("`name` (string, required)"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("unknown-tool"), "{}", results[1]);
    assert!(results[2].contains("does not call itself"), "{}", results[2]);
    assert!(
        results[3].contains("/arguments: it must be an object"),
        "{}",
        results[3]
    );
}

// accept: 67
#[tokio::test]
async fn locks_entities_and_long_results_work_through_the_gateway() {
    let find = tool("find", |_, _| {
        let entity = NativeEntity::new("cart", Arc::new(())).with_id("c").method(
            "dump",
            "Dumps.",
            |_, _: NoArguments, _| async { Ok::<_, String>("x".repeat(1000)) },
        );
        Ok(ToolResult::text("found").with_provider(Arc::new(entity.unwrap())))
    });
    let playbook = Playbook::new().with_locked_tool(
        echo("ship"),
        Unlock::by(toolwit_core::ToolSelector::later("cart_c_dump")),
    );
    let steps = [
        call([
            through("ship", json!({})),
            ("find", json!({})),
            through("cart_c_dump", json!({})),
            through("ship", json!({})),
        ]),
        call([("read_result", json!({"result": "r1", "offset": 600}))]),
        reply("ok"),
    ];
    let limits = LoopLimits {
        result_bytes_max: 500,
        ..LoopLimits::default()
    };
    let (builder, model) = TestModel::playing(steps);
    let builder = builder.tools([find]).playbook(playbook).limits(limits);
    let outcome = builder.delivery(ToolDelivery::Gateway).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(results[0].contains("call `cart_c_dump` first"), "{}", results[0]);
    assert!(results[2].contains("[cut: "), "{}", results[2]);
    assert_eq!(results[3], "ship");
    assert!(results[4].starts_with("xxx"), "{}", results[4]);
    assert_eq!(model.request(2).serialised_tools, model.request(0).serialised_tools);
}

#[tokio::test]
async fn native_delivery_requires_a_model_that_supports_it() {
    let (builder, _) = TestModel::playing([]);
    let error = builder.delivery(ToolDelivery::Native).build().err().unwrap();
    assert!(
        error
            .to_string()
            .contains("`test` does not support the delivery `native`"),
        "{error}"
    );
}
