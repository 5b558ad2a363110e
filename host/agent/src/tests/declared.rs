//! Property test of the declared tools with facades, entities, locks and evictions. Within a turn, only evictions remove
//! declared tools. A resumed conversation declares the same tools as the original one.

use proptest::prelude::*;

use super::property::assert_declared_tools_grow;
use super::*;
use crate::injection::{EntityTools, Facade, Playbook, StrategyChain, Unfolding, Unlock};
use toolwit_core::{EntityMethods, NoArguments};

/// A call that the model makes.
#[derive(Clone, Debug)]
enum ModelCall {
    /// Opens the facade with this name.
    OpenFacade(&'static str),
    /// Opens a category of the facade `files`.
    OpenCategory(&'static str),
    /// Opens the facade `cart` for the cart with this id.
    OpenCart(u8),
    /// Calls `find`, which returns a `part` with each of these ids.
    FindParts(Vec<u8>),
    /// Calls the tool with this name without arguments.
    Tool(&'static str),
}

fn model_call() -> impl Strategy<Value = ModelCall> {
    let names = vec![
        "query",
        "drop_table",
        "read",
        "write",
        "add",
        "locked",
        "free",
        "db_context",
        "part_p1_look",
        "part_p3_take",
        "nowhere",
    ];
    prop_oneof![
        prop::sample::select(vec!["db", "admin", "files"]).prop_map(ModelCall::OpenFacade),
        prop::sample::select(vec!["r", "w", "all", "x"]).prop_map(ModelCall::OpenCategory),
        (0..3_u8).prop_map(ModelCall::OpenCart),
        prop::collection::vec(0..6_u8, 0..4).prop_map(ModelCall::FindParts),
        prop::sample::select(names).prop_map(ModelCall::Tool),
    ]
}

impl ModelCall {
    fn name_and_arguments(&self) -> (String, String) {
        let (name, arguments) = match self {
            Self::OpenFacade(name) | Self::Tool(name) => (*name, json!({})),
            Self::OpenCategory(category) => ("files", json!({"category": category})),
            Self::OpenCart(id) => ("cart", json!({"id": id})),
            Self::FindParts(ids) => ("find", json!({"ids": ids})),
        };
        (name.to_owned(), arguments.to_string())
    }
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let admin = Facade::builder("admin", "")
        .tools([echo("drop_table")])
        .exclusive()
        .build()
        .unwrap();
    let db = Facade::builder("db", "")
        .tools([echo("query")])
        .tool(admin)
        .build()
        .unwrap();
    let files = Facade::builder("files", "")
        .category("r", [echo("read")])
        .category("w", [echo("write")]);
    let files = files.tools([echo("query")]).build().unwrap();
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let cart = Facade::builder("cart", "").select_with(schema, |arguments, _| {
        let text = format!("added to {}", arguments["id"]);
        Ok(vec![tool("add", move |_, _| Ok(ToolResult::text(text.clone())))])
    });
    vec![
        Arc::new(db),
        Arc::new(files),
        Arc::new(cart.build().unwrap()),
        find_tool(),
    ]
}

/// Returns the tool `find`. Its result contains a `part` entity for each id of the argument `ids`.
fn find_tool() -> Arc<dyn Tool> {
    let handler = |_: Arc<()>, _: NoArguments, _: ToolContext| async { Ok::<_, String>("seen") };
    let methods = EntityMethods::<()>::new("part")
        .method("look", "Looks.", handler)
        .unwrap();
    let methods = methods.method("take", "Takes.", handler).unwrap();
    tool("find", move |arguments, _| {
        let ids = arguments
            .get("ids")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mut result = ToolResult::text("found");
        for id in ids {
            result = result.with_provider(Arc::new(methods.entity(format!("p{id}"), Arc::new(())).unwrap()));
        }
        Ok(result)
    })
}

fn limits(tools_max: usize) -> LoopLimits {
    LoopLimits {
        tools_max,
        unknown_tools: UnknownToolPolicy::Never,
        ..LoopLimits::default()
    }
}

fn configure(builder: ConversationBuilder, tools_max: usize) -> ConversationBuilder {
    let strategies = StrategyChain::new()
        .then(Unfolding::new().with_refolding())
        .then(EntityTools);
    let playbook = Playbook::new()
        .with_tool(echo("free"))
        .with_locked_tool(echo("locked"), Unlock::by_any(["free", "query"]));
    builder
        .tools(tools())
        .strategies(strategies)
        .playbook(playbook)
        .limits(limits(tools_max))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // accept: 3, accept: 40, accept: 92, accept: 132
    #[test]
    fn only_evictions_remove_declared_tools_within_a_turn_and_a_resume_declares_the_same_tools(
        turns in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(model_call(), 1..4), 0..5),
            1..4,
        ),
        tools_max in prop::sample::select(vec![8, 12, 128]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let response = |calls: &Vec<ModelCall>| raw_calls(calls.iter().map(ModelCall::name_and_arguments).collect());
        let steps = turns.iter().flat_map(|turn| turn.iter().map(response).chain([reply("ok")]));
        let (builder, model) = TestModel::playing(steps.chain([reply("ok")]).collect::<Vec<_>>());
        let mut conversation = configure(builder, tools_max).build().unwrap();
        for _ in &turns {
            let outcome = runtime.block_on(conversation.run("go")).unwrap();
            assert_valid(&outcome.history);
        }
        let (builder, resumed_model) = TestModel::playing([reply("ok")]);
        let builder = configure(builder, tools_max).history(conversation.history().to_vec());
        let mut resumed_conversation = builder.resume(model.events()).build().unwrap();
        for conversation in [&mut conversation, &mut resumed_conversation] {
            runtime.block_on(conversation.run("again")).unwrap();
        }
        assert_declared_tools_grow(&model, tools_max);
        assert_declared_tools_grow(&resumed_model, tools_max);
        let last = model.request(model.request_count() - 1);
        prop_assert_eq!(last.serialised_tools, resumed_model.request(0).serialised_tools, "the same tools are declared");
        let names = |conversation: &Conversation| -> Vec<_> {
            conversation.tools().iter().map(|tool| tool.name.clone()).collect()
        };
        prop_assert_eq!(names(&conversation), names(&resumed_conversation), "the same tools can be called");
    }
}
