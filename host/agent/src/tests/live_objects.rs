//! Native objects: the order of calls on them, their identity, and objects on the blackboard.

use super::*;
use crate::AgenticTool;
use crate::injection::Chaining;
use toolwit_core::{Artifact, EntityMethods, ToolObject};
use toolwit_macros::{Entity, tool};

/// A customer with a log of notes. Clones share the log.
#[derive(Clone, Entity)]
#[entity(crate = toolwit_core)]
struct Customer {
    id: String,
    #[serde(skip)]
    log: Arc<Mutex<Vec<String>>>,
}

#[tool(crate = toolwit_core)]
impl Customer {
    /// Appends a text to the log after `delay` yields to the executor. Returns the log.
    #[tool]
    async fn note(&self, text: String, #[tool(default = 0)] delay: u32) -> Vec<String> {
        for _ in 0..delay {
            tokio::task::yield_now().await;
        }
        let mut log = self.log.lock().unwrap();
        log.push(text);
        log.clone()
    }

    /// Finds the neighbours, who are entities too.
    #[tool]
    fn neighbours(&self) -> Vec<Customer> {
        vec![
            customer(&format!("{}-left", self.id)),
            customer(&format!("{}-right", self.id)),
        ]
    }
}

fn customer(id: &str) -> Customer {
    Customer {
        id: id.to_owned(),
        log: Arc::default(),
    }
}

/// Finds customers.
#[tool(crate = toolwit_core)]
fn find(ids: Vec<String>) -> Vec<Customer> {
    ids.iter().map(|id| customer(id)).collect()
}

/// Returns 20 ids. The 20 customers of one result share their methods.
fn twenty_ids() -> Vec<String> {
    (0..20).map(|number| format!("c{number}")).collect()
}

/// Runs a conversation with the tool `find`. Returns the results of its calls.
async fn run(builder: ConversationBuilder) -> Vec<String> {
    let outcome = builder.tool(find_tool().unwrap()).run("go").await.unwrap();
    assert_valid(&outcome.history);
    tool_results(&outcome.history).into_iter().map(str::to_owned).collect()
}

// accept: 28, accept: 32, accept: 34, accept: 39
#[tokio::test]
async fn returned_structs_have_tools_also_if_a_method_returns_them() {
    let namesake = echo("customer_c1left_note");
    let (builder, model) = TestModel::playing([
        call([("find", json!({"ids": ["c1"]}))]),
        call([("customer_c1_neighbours", json!({}))]),
        call([("customer_c1right_note", json!({"text": "hi"}))]),
        reply("ok"),
    ]);
    let results = run(builder.tools([namesake])).await;
    let customers: Value = serde_json::from_str(&results[0]).unwrap();
    let names = json!(["customer_c1_note", "customer_c1_neighbours"]);
    assert_eq!(
        customers,
        json!([{"type": "customer", "id": "c1", "available_tools": names}])
    );
    let neighbours: Value = serde_json::from_str(&results[1]).unwrap();
    assert_ne!(
        neighbours[0]["available_tools"][0], "customer_c1left_note",
        "another tool has that name"
    );
    assert_eq!(neighbours[0]["available_tools"][1], "customer_c1left_neighbours");
    assert_eq!(results[2], r#"["hi"]"#);
    assert_eq!(model.events_named("entity_discovered").len(), 3);
}

// accept: 129
#[tokio::test]
async fn calls_on_one_object_run_in_call_order_and_calls_on_two_objects_run_concurrently() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let shared_log = log.clone();
    let open_customers = tool("open", move |_, _| {
        let customer = |id: &str| Customer {
            id: id.to_owned(),
            log: shared_log.clone(),
        };
        Ok(ToolResult::of(Arc::new([customer("c1"), customer("c2")])).unwrap())
    });
    let (builder, _) = TestModel::playing([
        call([("open", json!({}))]),
        call([
            ("customer_c1_note", json!({"text": "first", "delay": 5})),
            ("customer_c1_note", json!({"text": "second"})),
            ("customer_c2_note", json!({"text": "other"})),
        ]),
        reply("ok"),
    ]);
    run(builder.tools([open_customers])).await;
    assert_eq!(*log.lock().unwrap(), ["other", "first", "second"]);
}

// accept: 129
#[tokio::test]
async fn calls_on_a_member_of_a_group_run_in_call_order_and_so_do_calls_on_a_tool_object() {
    let two_notes = |name: &str, extra_arguments: Value| {
        let arguments = |text: &str, delay: u32| {
            let mut arguments = json!({"text": text, "delay": delay});
            arguments
                .as_object_mut()
                .unwrap()
                .extend(extra_arguments.as_object().unwrap().clone());
            arguments
        };
        call([(name, arguments("first", 5)), (name, arguments("second", 0))])
    };
    let (builder, _) = TestModel::playing([
        call([("find", json!({"ids": twenty_ids()}))]),
        two_notes("customer_note", json!({"customer_id": "c7"})),
        two_notes("note", json!({})),
        reply("ok"),
    ]);
    let results = run(builder.tool_object(customer("c99"))).await;
    for index in [2, 4] {
        assert_eq!(results[index], r#"["first","second"]"#, "{results:?}");
    }
}

#[tokio::test]
async fn calls_on_a_member_with_its_own_tool_and_with_the_shared_tool_run_in_call_order() {
    let own_tool = |text: &str, delay: u32| ("customer_c3_note", json!({"text": text, "delay": delay}));
    let shared_tool = |text: &str, delay: u32| {
        (
            "customer_note",
            json!({"customer_id": "c3", "text": text, "delay": delay}),
        )
    };
    let (builder, _) = TestModel::playing([
        call([("find", json!({"ids": ["c3"]}))]),
        call([("find", json!({"ids": twenty_ids()}))]),
        call([own_tool("first", 5), shared_tool("second", 0)]),
        call([shared_tool("third", 5), own_tool("fourth", 0)]),
        reply("ok"),
    ]);
    let results = run(builder).await;
    assert_eq!(results.last().unwrap(), r#"["first","second","third","fourth"]"#);
}

// accept: 29, accept: 37, accept: 38
#[tokio::test]
async fn an_entity_is_one_instance_whether_a_result_contains_it_alone_or_among_many() {
    let own_note = |text: &str| call([("customer_c3_note", json!({"text": text}))]);
    let shared_note = |text: &str| call([("customer_note", json!({"text": text, "customer_id": "c3"}))]);
    let (builder, model) = TestModel::playing([
        call([("find", json!({"ids": ["c3"]}))]),
        own_note("alone"),
        call([("find", json!({"ids": twenty_ids()}))]),
        shared_note("shared"),
        own_note("alone again"),
        reply("ok"),
    ]);
    let results = run(builder).await;
    assert_eq!(results[3], r#"["alone","shared"]"#);
    assert_eq!(results[4], r#"["alone","shared","alone again"]"#);
    let customers: Value = serde_json::from_str(&results[2]).unwrap();
    assert_eq!(
        customers[3]["available_tools"][0], "customer_c3_note",
        "the entity keeps its own tools"
    );
    assert_eq!(
        model.events_named("iteration_started").last().unwrap()["providers"],
        20,
        "the entity is counted once"
    );
}

// accept: 79
#[tokio::test]
async fn two_objects_of_one_type_have_distinct_tools_or_are_refused() {
    #[derive(Clone)]
    struct Counter(u32);

    #[tool(crate = toolwit_core)]
    impl Counter {
        /// Counts.
        #[tool]
        fn count(&self) -> u32 {
            self.0
        }
    }

    struct Named(&'static str);

    #[tool(crate = toolwit_core)]
    impl Named {
        fn id(&self) -> &str {
            self.0
        }

        /// Returns the name.
        #[tool]
        fn who(&self) -> &'static str {
            self.0
        }
    }

    let calls = call([
        ("who", json!({})),
        ("named_bob_who", json!({})),
        ("count", json!({})),
        ("count_b", json!({})),
    ]);
    let (builder, _) = TestModel::playing([calls, reply("ok")]);
    let renamed = ToolObject::new(Counter(2)).with_names(|method| format!("{method}_b"));
    let builder = builder.tool_object(Named("ada")).tool_object(Named("bob"));
    let results = run(builder.tool_object(Counter(1)).tool_object(renamed)).await;
    assert_eq!(results, ["ada", "bob", "1", "2"]);

    let two_counters = Conversation::builder()
        .model(TestModel::default())
        .tool_object(Counter(1))
        .tool_object(Counter(2));
    let error = two_counters.build().err().unwrap();
    assert!(
        error.message.contains("`count` of an object has the same id"),
        "{error}"
    );
    let agent = AgenticTool::new("agent", "Counts.")
        .with_tool_object(Counter(1))
        .with_tool_object(Counter(2));
    let (builder, _) = TestModel::playing([call([("agent", json!({"task": "count"}))]), reply("ok")]);
    let outcome = builder.tool(agent).run("go").await;
    assert!(format!("{outcome:?}").contains("has the same id"), "{outcome:?}");
}

/// A cart that becomes an entity only through the artifact that contains it.
#[derive(serde::Serialize)]
struct Cart {
    id: u32,
    #[serde(skip)]
    items: Mutex<Vec<String>>,
}

#[tool(crate = toolwit_core)]
impl Cart {
    /// Puts an item into the cart.
    #[tool]
    fn add(&self, item: String) -> Vec<String> {
        let mut items = self.items.lock().unwrap();
        items.push(item);
        items.clone()
    }
}

fn cart(id: u32) -> Arc<Cart> {
    Arc::new(Cart {
        id,
        items: Mutex::default(),
    })
}

// accept: 43, accept: 45
#[tokio::test]
async fn a_returned_live_artifact_binds_a_chained_method_and_several_do_not() {
    let open = tool("open", |arguments, _| {
        let ids = arguments["ids"].as_array().unwrap().iter();
        let carts = ids.map(|id| Artifact::live(cart(u32::try_from(id.as_u64().unwrap()).unwrap())).unwrap());
        Ok(carts.fold(ToolResult::text("opened"), ToolResult::with_artifact))
    });
    let add = |item: &str| call([("cart_add", json!({"item": item}))]);
    let open_carts = |ids: Value| call([("open", json!({"ids": ids}))]);
    let steps = [
        add("early"),
        open_carts(json!([1])),
        add("pen"),
        open_carts(json!([2, 3])),
        add("ink"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let methods = EntityMethods::<Cart>::from_tool_methods().unwrap();
    let results = run(builder.chaining(Chaining::new().with_type(&methods)).tools([open])).await;
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert_eq!(results[2], r#"["pen"]"#);
    assert_eq!(
        results[4], r#"["pen","ink"]"#,
        "two carts in one result do not change the binding"
    );
    assert_eq!(model.events_named("entity_discovered")[0]["id"], "1");
}

// accept: 140
#[tokio::test]
async fn a_live_object_is_put_on_the_blackboard_and_read_from_it() {
    let put = tool("put", |_, context| {
        context
            .blackboard()?
            .put_named("cart", Artifact::live(cart(1)).unwrap())
            .unwrap();
        Ok(ToolResult::text("put"))
    });
    let add_pen = tool("add_pen", |_, context| {
        let cart = context.blackboard()?.last_live::<Cart>();
        Ok(match cart {
            Some(cart) => ToolResult::text(cart.add("pen".to_owned()).join(", ")),
            None => ToolResult::error("no cart"),
        })
    });
    let call_add_pen = || call([("add_pen", json!({}))]);
    let (builder, _) = TestModel::playing([
        call_add_pen(),
        call([("put", json!({}))]),
        call_add_pen(),
        call_add_pen(),
        reply("ok"),
    ]);
    let mut conversation = builder.tools([put, add_pen]).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results, ["no cart", "put", "pen", "pen, pen"]);
}

// accept: 26
#[tokio::test]
async fn strategies_receive_the_typed_output() {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let output_ids = ids.clone();
    let collect_ids = move |context: &crate::injection::InjectionContext<'_>| {
        let customers = context.call().result.downcast::<Vec<Customer>>();
        output_ids
            .lock()
            .unwrap()
            .extend(customers.iter().map(|customers| customers[0].id.clone()));
        crate::injection::Injection::none()
    };
    let (builder, _) = TestModel::playing([
        call([("find", json!({"ids": ["c1"]}))]),
        call([("look", json!({}))]),
        reply("ok"),
    ]);
    run(builder.strategy(collect_ids).tools([echo("look")])).await;
    assert_eq!(
        *ids.lock().unwrap(),
        ["c1"],
        "only `find` has a typed output of customers"
    );
}
