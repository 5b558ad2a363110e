//! Live Rust objects whose methods become tools: the main scenario of the project with native tools instead of a plugin.

use super::*;
use toolwit_core::{NativeEntity, NoArguments, ToolProvider};

struct Customer {
    id: String,
    average_spend: u32,
    cart: Mutex<Vec<String>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct OrdersInput {
    /// The maximum number of orders to return.
    #[serde(default = "default_limit")]
    limit: u32,
}

fn default_limit() -> u32 {
    10
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AddItemInput {
    item: String,
}

fn customer(id: &str, average_spend: u32) -> Arc<dyn ToolProvider> {
    let customer = Arc::new(Customer {
        id: id.to_owned(),
        average_spend,
        cart: Mutex::default(),
    });
    let entity = NativeEntity::of(customer)
        .with_id(id)
        .method(
            "get_average_spend",
            "Gets the average monthly spend.",
            |customer, _: NoArguments, _| async move { Ok::<_, String>(customer.average_spend) },
        )
        .and_then(|entity| {
            entity.method(
                "get_recent_orders",
                "Gets the last orders.",
                |customer, input: OrdersInput, _| async move {
                    let mut result = ToolResult::text(format!("{} orders", input.limit));
                    for number in 1..=input.limit.min(2) {
                        result = result.with_provider(order(&format!("{}-o{number}", customer.id)));
                    }
                    Ok::<_, String>(result)
                },
            )
        })
        .and_then(|entity| {
            entity.method(
                "add_item",
                "Puts an item into the cart.",
                |customer, input: AddItemInput, _| async move {
                    let mut cart = customer.cart.lock().unwrap();
                    match input.item.as_str() {
                        "" => Err("an item has a name"),
                        _ => {
                            cart.push(input.item);
                            Ok(cart.clone())
                        }
                    }
                },
            )
        });
    Arc::new(entity.unwrap())
}

fn order(id: &str) -> Arc<dyn ToolProvider> {
    let text = format!("the items of {id}");
    let entity = NativeEntity::new("order", Arc::new(text)).with_id(id).method(
        "get_line_items",
        "Gets the items.",
        |text, _: NoArguments, _| async move { Ok::<_, String>((*text).clone()) },
    );
    Arc::new(entity.unwrap())
}

/// Returns the tool `search_customer`, which creates a customer for each requested id. The average spend of the n-th customer
/// of a call is n * 150.
fn search_tool() -> Arc<dyn Tool> {
    tool("search_customer", |arguments, _| {
        let ids: Vec<_> = arguments["ids"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut result = ToolResult::value(json!(ids));
        for (number, id) in (1..).zip(ids) {
            result = result.with_provider(customer(id, number * 150));
        }
        Ok(result)
    })
}

fn search<const N: usize>(ids: [&str; N]) -> Step {
    call([("search_customer", json!({"ids": ids.to_vec()}))])
}

async fn run_steps(steps: impl IntoIterator<Item = Step>) -> (RunOutcome, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder
        .tools([search_tool()])
        .run("What is John Smith's average spend?")
        .await
        .unwrap();
    assert_valid(&outcome.history);
    (outcome, model)
}

// accept: 3, accept: 20, accept: 30, accept: 126
#[tokio::test]
async fn methods_of_a_returned_customer_become_tools() {
    let (outcome, model) = run_steps([
        search(["c-123"]),
        call([("customer_c123_get_average_spend", json!({}))]),
        reply("It is $150."),
    ])
    .await;
    assert_eq!(model.request(0).names, ["search_customer"]);
    assert_eq!(
        model.request(1).names[1..],
        [
            "customer_c123_get_average_spend",
            "customer_c123_get_recent_orders",
            "customer_c123_add_item"
        ]
    );
    assert_eq!(tool_results(&outcome.history)[1], "150");
    assert_eq!(outcome.injected.len(), 3);
    assert!(outcome.usage.injected_bytes > 200, "{:?}", outcome.usage);
    let discovered = &model.events_named("entity_discovered")[0];
    assert_eq!(
        (&discovered["type"], &discovered["id"], &discovered["binding"]),
        (&json!("customer"), &json!("c-123"), &json!("new"))
    );
    assert_eq!(discovered["tools"][0], "customer_c123_get_average_spend");
    assert_eq!(model.events_named("iteration_started")[1]["providers"], 1);
}

// accept: 29, accept: 30, accept: 37
#[tokio::test]
async fn customers_with_similar_ids_have_distinct_tools() {
    let (outcome, model) = run_steps([search(["c-1", "c1", "c-2"]), reply("ok")]).await;
    let names: Vec<_> = outcome
        .injected
        .iter()
        .filter(|name| name.as_str().ends_with("spend"))
        .collect();
    assert_eq!(
        (names[0].as_str(), names[2].as_str()),
        ("customer_c1_get_average_spend", "customer_c2_get_average_spend")
    );
    assert_eq!(
        names[1].as_str(),
        format!("customer_c1_{}_get_average_spend", toolwit_core::text::short_hash("c1"))
    );
    assert_eq!(model.request(1).names.len(), 10);
}

// accept: 32, accept: 37, accept: 38
#[tokio::test]
async fn a_cart_keeps_its_items_when_its_customer_is_found_again() {
    let add = |item: &str| call([("customer_c1_add_item", json!({"item": item}))]);
    let (outcome, model) = run_steps([search(["c-1"]), add("apple"), search(["c-1"]), add("pear"), reply("ok")]).await;
    assert_eq!(tool_results(&outcome.history)[3], r#"["apple","pear"]"#);
    assert_eq!(outcome.injected.len(), 3, "the same entity does not add tools");
    assert_eq!(
        model.request(3).serialised_tools,
        model.request(1).serialised_tools,
        "the declared tools are unchanged"
    );
    assert_eq!(model.events_named("entity_discovered")[1]["binding"], "kept");
}

// accept: 32, accept: 129
#[tokio::test]
async fn one_response_can_search_a_customer_and_call_its_methods() {
    let (outcome, _) = run_steps([
        call([
            ("search_customer", json!({"ids": ["c-1"]})),
            ("customer_c1_add_item", json!({"item": "apple"})),
            ("customer_c1_add_item", json!({"item": "pear"})),
        ]),
        reply("ok"),
    ])
    .await;
    assert_eq!(
        tool_results(&outcome.history)[1..],
        [r#"["apple"]"#, r#"["apple","pear"]"#]
    );
}

// accept: 33
#[tokio::test]
async fn method_parameters_have_defaults_and_method_errors_are_returned() {
    let (outcome, model) = run_steps([
        search(["c-1"]),
        call([
            ("customer_c1_get_recent_orders", json!({})),
            ("customer_c1_get_recent_orders", json!({"limit": "two"})),
            ("customer_c1_add_item", json!({"item": ""})),
        ]),
        reply("ok"),
    ])
    .await;
    let results = tool_results(&outcome.history);
    assert_eq!(results[1], "10 orders");
    assert!(results[2].contains("`limit` (integer, optional)"), "{}", results[2]);
    assert_eq!(results[3], "an item has a name");
    assert!(model.request(1).serialised_tools[2].contains("The maximum number of orders to return."));
}

// accept: 34
#[tokio::test]
async fn orders_of_a_customer_are_entities_too() {
    let (outcome, _) = run_steps([
        search(["c-1"]),
        call([("customer_c1_get_recent_orders", json!({"limit": 2}))]),
        call([("order_c1o2_get_line_items", json!({}))]),
        reply("ok"),
    ])
    .await;
    assert_eq!(tool_results(&outcome.history)[2], "the items of c-1-o2");
    assert_eq!(outcome.injected.len(), 5);
}

// accept: 40
#[tokio::test]
async fn many_tools_cause_a_warning_and_too_many_evict_the_least_recently_used() {
    let ids: Vec<_> = (0..60).map(|n| format!("c-{n}")).collect();
    let mut steps: Vec<_> = ids.iter().map(|id| search([id.as_str()])).collect();
    steps.push(call([("customer_c0_get_average_spend", json!({}))]));
    steps.push(reply("ok"));
    let (builder, model) = TestModel::playing(steps);
    let limits = LoopLimits {
        iterations_max: 70,
        ..LoopLimits::default()
    };
    let outcome = builder.tools([search_tool()]).limits(limits).run("go").await.unwrap();
    assert_eq!(model.events_named("tools_many").len(), 1);
    assert_eq!(model.events_named("tools_many")[0]["count"], 31);
    let before = model.request(60);
    assert_eq!(before.names.len(), 128);
    assert!(!before.names.contains(&"customer_c0_get_average_spend".to_owned()));
    assert_eq!(before.names[0], "search_customer", "initial tools stay declared");
    assert_eq!(
        tool_results(&outcome.history)[60],
        "150",
        "an evicted tool can be called"
    );
    assert!(
        model
            .request(61)
            .names
            .contains(&"customer_c0_get_average_spend".to_owned()),
        "a called tool is declared again"
    );
    assert_eq!(model.request(61).names.len(), 128);
}

// accept: 31
#[tokio::test]
async fn a_customer_without_an_id_is_returned_without_tools() {
    let (outcome, model) = run_steps([search(["", "c-1"]), reply("ok")]).await;
    let result = "[\"\",\"c-1\"]\n[a `customer` has no tools: its id is empty]";
    assert_eq!(tool_results(&outcome.history)[0], result, "the model reads the reason");
    let invalid = &model.events_named("provider_invalid")[0];
    assert_eq!(
        (&invalid["type"], &invalid["reason"]),
        (&json!("customer"), &json!("its id is empty"))
    );
    assert_eq!(outcome.injected.len(), 3);
}

// accept: 41
#[tokio::test]
async fn entities_live_as_long_as_the_conversation() {
    let file = Arc::new(());
    let opened_file = file.clone();
    let open = tool("open", move |_, _| {
        let entity = NativeEntity::new("file", opened_file.clone()).with_id("f-1").method(
            "read",
            "Reads.",
            |_, _: NoArguments, _| async { Ok::<_, String>("text") },
        );
        Ok(ToolResult::text("opened").with_provider(Arc::new(entity.unwrap())))
    });
    let (builder, _) = TestModel::playing([
        call([("open", json!({}))]),
        reply("ok"),
        call([("file_f1_read", json!({}))]),
        reply("ok"),
    ]);
    let mut conversation = builder.tools([open]).build().unwrap();
    conversation.run("open").await.unwrap();
    let outcome = conversation.run("read").await.unwrap();
    assert_eq!(
        tool_results(&outcome.history)[1],
        "text",
        "the entity outlives the turn that opened it"
    );
    assert!(Arc::strong_count(&file) > 1);
    drop(conversation);
    assert_eq!(Arc::strong_count(&file), 1);
}

// accept: 37, accept: 39
#[tokio::test]
async fn a_result_lists_the_assigned_names_of_an_entitys_tools() {
    let find = tool("find", |_, _| {
        let guessed_names = json!({"type": "order", "id": "o-1", "available_tools": ["order_o1_get_line_items"]});
        Ok(ToolResult::value(guessed_names).with_provider(order("o-1")))
    });
    let namesake = echo("order_o1_get_line_items");
    let (builder, model) = TestModel::playing([call([("find", json!({}))]), reply("ok")]);
    let outcome = builder.tools([find, namesake]).run("go").await.unwrap();
    let result: Value = serde_json::from_str(tool_results(&outcome.history)[0]).unwrap();
    let assigned = outcome.injected[0].as_str();
    assert_ne!(assigned, "order_o1_get_line_items", "another tool has that name");
    assert_eq!(result["available_tools"], json!([assigned]));
    assert_eq!(
        model.events_named("tool_finished")[0]["content"],
        tool_results(&outcome.history)[0]
    );
}

// accept: 29, accept: 40
#[tokio::test]
async fn five_hundred_customers_share_one_set_of_tools() {
    let ids: Vec<_> = (0..500).map(|n| format!("c-{n}")).collect();
    let overlapping_ids: Vec<_> = (490..510).map(|n| format!("c-{n}")).collect();
    let spend = |id: &str| call([("customer_get_average_spend", json!({"customer_id": id}))]);
    let add = |id: &str| call([("customer_add_item", json!({"customer_id": id, "item": "pear"}))]);
    let (outcome, model) = run_steps([
        call([("search_customer", json!({"ids": ids}))]),
        spend("c-99"),
        add("c-495"),
        call([("search_customer", json!({"ids": overlapping_ids}))]),
        add("c-495"),
        spend("c-505"),
        spend("nobody"),
        call([("customer_get_average_spend", json!({}))]),
        search(["c-495"]),
        add("c-495"),
        reply("ok"),
    ])
    .await;
    assert_eq!(
        outcome.injected.len(),
        3,
        "a customer that is found again alone adds no tools"
    );
    assert_eq!(model.events_named("entity_discovered")[2]["binding"], "kept");
    assert_eq!(
        model.events_named("entity_discovered")[2]["tools"][0],
        "customer_get_average_spend"
    );
    assert_eq!(
        model.request(1).names[1..],
        [
            "customer_get_average_spend",
            "customer_get_recent_orders",
            "customer_add_item"
        ]
    );
    let results = tool_results(&outcome.history);
    assert_eq!(results[1], "15000");
    assert_eq!(results[4], r#"["pear","pear"]"#, "the first instance stays");
    assert_eq!(results[5], "2400");
    assert!(
        results[6].contains("the `customer` with the id `nobody` does not exist"),
        "{}",
        results[6]
    );
    assert!(
        results[7].contains("`customer_id` (string, required)"),
        "{}",
        results[7]
    );
    assert_eq!(results[9], r#"["pear","pear","pear"]"#, "the first instance stays");
    assert!(model.request(1).serialised_tools[3].contains(r#""required":["customer_id","item"]"#));
    assert_eq!(model.events_named("iteration_started")[1]["providers"], 500);
}
