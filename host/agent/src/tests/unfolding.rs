//! Facades: tools that reveal further tools when they are called.

use super::*;
use crate::injection::{Facade, Injection, InjectionContext, StrategyChain};
use toolwit_core::{NativeEntity, NoArguments, ToolDefinition, ToolId, ToolProvider};

/// Returns a facade with tools that return their names.
pub(super) fn facade(name: &str, tools: &[&str]) -> Facade {
    let tools = tools.iter().map(|tool| echo(tool));
    let facade = Facade::builder(name, format!("Works with {name}.")).tools(tools);
    facade.build().unwrap()
}

pub(super) fn database() -> Facade {
    facade("db", &["query", "insert"])
}

pub(super) async fn run_steps(
    facades: impl IntoIterator<Item = Facade>,
    steps: impl IntoIterator<Item = Step>,
) -> (RunOutcome, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let tools = facades.into_iter().map(|facade| Arc::new(facade) as Arc<dyn Tool>);
    let outcome = builder.tools(tools).run("go").await.unwrap();
    assert_valid(&outcome.history);
    (outcome, model)
}

/// Returns a step in which the model calls a tool or opens a facade, without arguments.
pub(super) fn invoke(name: &str) -> Step {
    call([(name, json!({}))])
}

/// Parses the result of a call as JSON.
pub(super) fn parse_json(answer: &str) -> Value {
    serde_json::from_str(answer).unwrap()
}

// accept: 49, accept: 53, accept: 54
#[tokio::test]
async fn a_called_facade_reveals_its_tools_and_stays_declared() {
    let steps = [invoke("db"), invoke("db"), invoke("query"), reply("ok")];
    let (outcome, model) = run_steps([database()], steps).await;
    assert_eq!(model.request(0).names, ["db"]);
    assert_eq!(model.request(1).names, ["db", "query", "insert", "db_context"]);
    assert_eq!(
        model.request(1).serialised_tools[0],
        model.request(0).serialised_tools[0],
        "the declared facade is the same, byte for byte"
    );
    assert_eq!(
        model.request(2).serialised_tools,
        model.request(1).serialised_tools,
        "a repeated call adds nothing"
    );
    let answers = tool_results(&outcome.history);
    assert_eq!(parse_json(answers[0])["available_tools"], json!(["query", "insert"]));
    assert_eq!(answers[1], answers[0], "a repeated call lists the tools");
    assert_eq!(answers[2], "query");
    assert!(outcome.removed.is_empty());
}

// accept: 54, accept: 60, accept: 148
#[tokio::test]
async fn the_context_tool_returns_description_and_usage_notes() {
    let facade = Facade::builder("music", "Searches music.")
        .tools([echo("vector_search"), echo("text_search")])
        .usage_notes("Try vector search first.")
        .build()
        .unwrap();
    let (outcome, model) = run_steps([facade], [invoke("music"), invoke("music_context"), reply("ok")]).await;
    let declared = model.request(1).serialised_tools.concat();
    assert_eq!(declared.matches("Try vector search first.").count(), 1);
    assert!(model.request(1).serialised_tools[3].contains("the tools that `music` has revealed. Searches music."));
    let result = parse_json(tool_results(&outcome.history)[1]);
    assert_eq!(result["about"], "Searches music.");
    assert_eq!(result["usage_notes"], "Try vector search first.");
    assert_eq!(result["tools"][0]["name"], "vector_search");
    assert_eq!(
        result["tools"][1],
        json!({"name": "text_search", "description": "Is text_search.", "input_schema": {"type": "object"}})
    );
}

/// Returns the facade `files` with the categories `read` and `write`.
pub(super) fn files_facade() -> Facade {
    Facade::builder("files", "Reads and writes files.")
        .category("read", [echo("read_file"), echo("list_directory")])
        .category("write", [echo("write_file")])
        .build()
        .unwrap()
}

// accept: 50, accept: 51, accept: 132
#[tokio::test]
async fn a_category_reveals_its_tools_and_another_adds_to_them() {
    let open = |category: &str| call([("files", json!({"category": category}))]);
    let steps = [open("read"), open("write"), open("read"), reply("ok")];
    let (outcome, model) = run_steps([files_facade()], steps).await;
    assert!(model.request(0).serialised_tools[0].contains(r#""enum":["read","write"]"#));
    assert_eq!(
        model.request(1).names,
        ["files", "read_file", "list_directory", "files_context"]
    );
    assert_eq!(model.request(2).names[4..], ["write_file"]);
    assert_eq!(model.request(3).serialised_tools, model.request(2).serialised_tools);
    assert_eq!(
        parse_json(tool_results(&outcome.history)[2])["available_tools"],
        json!(["read_file", "list_directory"])
    );
}

// accept: 50, accept: 52
#[tokio::test]
async fn the_error_for_an_unknown_category_lists_the_categories() {
    let (outcome, model) = run_steps(
        [files_facade()],
        [
            call([("files", json!({"category": "execute"})), ("files", json!({}))]),
            reply("ok"),
        ],
    )
    .await;
    for answer in tool_results(&outcome.history) {
        assert!(answer.contains("invalid-arguments"), "{answer}");
    }
    assert!(
        tool_results(&outcome.history)[0].contains(r#"\"read\""#),
        "{:?}",
        tool_results(&outcome.history)
    );
    assert_eq!(model.request(1).names, ["files"]);
}

// accept: 59
#[tokio::test]
async fn an_uncategorised_tool_is_in_every_category_and_the_category_all_has_every_tool() {
    let categorised = |name: &str, category: &str| {
        let definition = ToolDefinition::new(ToolId::native(name), name, "", json!({"type": "object"}));
        let tool = NativeTool::from_definition(definition.with_category(category), |_, _| async {
            Ok(ToolResult::text(""))
        });
        Arc::new(tool.unwrap()) as Arc<dyn Tool>
    };
    let facade = || {
        Facade::builder("files", "")
            .tools([categorised("read", "r"), categorised("write", "w"), echo("status")])
            .category_parameter("kind")
            .build()
            .unwrap()
    };
    let (_, model) = run_steps([facade()], [call([("files", json!({"kind": "w"}))]), reply("ok")]).await;
    assert_eq!(model.request(1).names, ["files", "write", "status", "files_context"]);
    let (_, model) = run_steps([facade()], [call([("files", json!({"kind": "all"}))]), reply("ok")]).await;
    assert_eq!(
        model.request(1).names,
        ["files", "read", "write", "status", "files_context"]
    );
}

/// Returns a facade that creates two tools for the cart in its arguments. Both tools access the items of this cart.
fn cart_facade() -> Facade {
    let schema = json!({
        "type": "object",
        "properties": {"cart_id": {"type": "string"}},
        "required": ["cart_id"],
    });
    let facade = Facade::builder("cart", "Opens a cart.").select_with(schema, |arguments, context| {
        let id = arguments["cart_id"].as_str().unwrap_or_default().to_owned();
        let owner = context.text("tenant").unwrap_or("no tenant").to_owned();
        let items = Arc::new(Mutex::new(Vec::<String>::new()));
        let viewed_items = items.clone();
        let add = tool("add_item", move |arguments, _| {
            let mut items = items.lock().unwrap();
            items.push(arguments["item"].as_str().unwrap_or_default().to_owned());
            Ok(ToolResult::text("added"))
        });
        let view = tool("view_cart", move |_, _| {
            let items = viewed_items.lock().unwrap();
            Ok(ToolResult::text(format!("{owner} has {} in {id}", items.join(","))))
        });
        Ok(vec![add, view])
    });
    facade.build().unwrap()
}

// accept: 52, accept: 61, accept: 62, accept: 132
#[tokio::test]
async fn selected_tools_share_state_and_are_rebound_for_other_arguments() {
    let open_cart = |id: &str| call([("cart", json!({"cart_id": id}))]);
    let add = |item: &str| call([("add_item", json!({"item": item}))]);
    let view = || call([("view_cart", json!({}))]);
    let steps = [
        open_cart("a"),
        add("apple"),
        open_cart("a"),
        view(),
        open_cart("b"),
        add("pear"),
        view(),
        call([("cart", json!({"cart_id": 7}))]),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let context = ToolContext::new().with("tenant", "acme");
    let outcome = builder.tool(cart_facade()).context(context).run("go").await.unwrap();
    let answers = tool_results(&outcome.history);
    assert_eq!(
        answers[3], "acme has apple in a",
        "a call with the same arguments changes nothing"
    );
    assert_eq!(answers[6], "acme has pear in b");
    assert!(answers[7].contains("/cart_id"), "{}", answers[7]);
    assert_eq!(
        model.request(8).serialised_tools,
        model.request(1).serialised_tools,
        "tools keep their names"
    );
    assert_eq!(model.events_named("tools_rebound").len(), 1);
}

/// An object with a facade among its members.
struct Workshop;

impl ToolProvider for Workshop {
    fn prefix(&self) -> &str {
        "workshop"
    }

    fn instance_id(&self) -> Option<String> {
        None
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![echo("sweep"), Arc::new(facade("box", &["hammer"]))]
    }
}

// accept: 56, accept: 58, accept: 143
#[tokio::test]
async fn an_object_with_methods_becomes_one_facade() {
    let object = NativeEntity::new("clock", Arc::new(7)).with_id("c").method(
        "now",
        "Returns the time.",
        |hour, _: NoArguments, _| async move { Ok::<_, String>(*hour) },
    );
    let object = object.unwrap();
    let facade = Facade::of_object("time", "Returns times.", &object).unwrap();
    let (outcome, _) = run_steps([facade], [invoke("time"), invoke("clock_c_now"), reply("ok")]).await;
    assert_eq!(tool_results(&outcome.history)[1], "7");
    let facade = Facade::of_object("workshop", "Has a box.", &Workshop).unwrap();
    let (outcome, _) = run_steps(
        [facade],
        [invoke("workshop"), invoke("box"), invoke("hammer"), reply("ok")],
    )
    .await;
    assert_eq!(tool_results(&outcome.history)[2], "hammer", "a nested facade opens too");
    let empty_object: &dyn ToolProvider = &NativeEntity::new("empty", Arc::new(()));
    let error = Facade::of_object("facade", "", empty_object).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("the object `empty` of the facade `facade` has no methods"),
        "{error}"
    );
    assert!(Facade::of_object_or_none("facade", "", empty_object).is_none());
}

#[test]
fn categories_and_a_selection_are_refused_together() {
    let both = Facade::builder("both", "")
        .category("a", [echo("x")])
        .select_with(json!({"type": "object"}), |_, _| Ok(Vec::new()));
    let error = both.build().err().unwrap().to_string();
    assert!(
        error.contains("categories and a function that creates its tools"),
        "{error}"
    );
}

/// A tool that decorates another tool.
struct DecoratedTool(Arc<dyn Tool>);

#[async_trait]
impl Tool for DecoratedTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.0.call(arguments, context).await
    }

    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.0)
    }
}

// accept: 27
#[tokio::test]
async fn a_decorated_exclusive_facade_reveals_its_tools_and_locks_other_tools() {
    let other = facade("other", &[]);
    let exclusive = Facade::builder("mood", "")
        .tools([echo("formal")])
        .exclusive()
        .build()
        .unwrap();
    let decorated = DecoratedTool(Arc::new(DecoratedTool(Arc::new(exclusive))));
    let (builder, model) = TestModel::playing([invoke("mood"), invoke("other"), reply("ok")]);
    let outcome = builder.tool(decorated).tool(other).run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["mood", "other", "formal", "mood_context"]);
    assert!(
        tool_results(&outcome.history)[1].contains("cannot be called now"),
        "the decorated facade locks `other`"
    );
}

// accept: 129, accept: 132
#[tokio::test]
async fn two_facades_of_one_response_open_in_call_order_and_their_tools_get_distinct_names() {
    let both = [facade("prod", &["query", "status"]), facade("test", &["query"])];
    let (outcome, model) = run_steps(
        both,
        [
            call([("test", json!({})), ("prod", json!({})), ("query", json!({}))]),
            reply("ok"),
        ],
    )
    .await;
    assert_eq!(
        model.request(1).names,
        [
            "prod",
            "test",
            "query",
            "test_context",
            "prod_query",
            "status",
            "prod_context"
        ]
    );
    let answers = tool_results(&outcome.history);
    assert_eq!(parse_json(answers[0])["available_tools"], json!(["query"]));
    assert_eq!(
        parse_json(answers[1])["available_tools"],
        json!(["prod_query", "status"]),
        "the result has the name that the conversation assigned"
    );
    assert_eq!(
        answers[2], "query",
        "`query` can be called in the response that reveals it"
    );
}

// accept: 64
#[tokio::test]
async fn a_hundred_tools_behind_five_facades_are_two_calls_away() {
    let shelf = |number: usize| {
        let names: Vec<_> = (0..20).map(|tool| format!("tool_{number}_{tool}")).collect();
        facade(
            &format!("shelf_{number}"),
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    for (number, tool) in [(0, 0), (2, 19), (4, 7)] {
        let name = format!("tool_{number}_{tool}");
        let steps = [invoke(&format!("shelf_{number}")), invoke(&name), reply("ok")];
        let (outcome, model) = run_steps((0..5).map(shelf), steps).await;
        assert_eq!(model.request(0).names.len(), 5);
        assert_eq!(tool_results(&outcome.history)[1], name);
        assert_eq!(outcome.tool_calls.len(), 2);
    }
    let steps = [call([("shelf_3", json!({})), ("tool_3_5", json!({}))]), reply("ok")];
    let (outcome, _) = run_steps((0..5).map(shelf), steps).await;
    assert_eq!(
        tool_results(&outcome.history)[1],
        "tool_3_5",
        "both calls may be in one response"
    );
}

// accept: 19, accept: 22, accept: 24
#[tokio::test]
async fn facades_do_not_unfold_without_strategies_and_unfold_before_appended_strategies() {
    let (builder, model) = TestModel::playing([invoke("db"), reply("ok")]);
    builder.tool(database()).without_strategies().run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["db"]);
    let strategies = StrategyChain::with_unfolding().then(|context: &InjectionContext<'_>| {
        assert_eq!(context.call().name.as_str(), "db");
        Injection::add(vec![echo("extra")])
    });
    let (builder, model) = TestModel::playing([invoke("db"), reply("ok")]);
    builder.tool(database()).strategies(strategies).run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["db", "query", "insert", "db_context", "extra"]);
}
