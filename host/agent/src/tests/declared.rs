//! Property test of facades, entities, locks and evictions: within a turn, only evictions remove declared tools.
//! A resumed conversation declares the same tools.

use proptest::prelude::*;

use super::property::assert_grows;
use super::*;
use crate::injection::{EntityTools, Facade, Playbook, StrategyChain, Unfolding, Unlock};
use toolwit_core::{EntityMethods, NoArguments};

/// A call that the model makes.
#[derive(Clone, Debug)]
enum Operation {
    Open(&'static str),
    OpenCategory(&'static str),
    OpenCart(u8),
    Find(Vec<u8>),
    Call(&'static str),
}

fn operation() -> impl Strategy<Value = Operation> {
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
        prop::sample::select(vec!["db", "admin", "files"]).prop_map(Operation::Open),
        prop::sample::select(vec!["r", "w", "all", "x"]).prop_map(Operation::OpenCategory),
        (0..3_u8).prop_map(Operation::OpenCart),
        prop::collection::vec(0..6_u8, 0..4).prop_map(Operation::Find),
        prop::sample::select(names).prop_map(Operation::Call),
    ]
}

impl Operation {
    /// Returns the name and the arguments of the call.
    fn call(&self) -> (String, String) {
        let (name, arguments) = match self {
            Self::Open(name) | Self::Call(name) => (*name, json!({})),
            Self::OpenCategory(category) => ("files", json!({"category": category})),
            Self::OpenCart(id) => ("cart", json!({"id": id})),
            Self::Find(ids) => ("find", json!({"ids": ids})),
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
    vec![Arc::new(db), Arc::new(files), Arc::new(cart.build().unwrap()), find()]
}

fn find() -> Arc<dyn Tool> {
    let look = |_: Arc<()>, _: NoArguments, _: ToolContext| async { Ok::<_, String>("seen") };
    let parts = EntityMethods::<()>::new("part").method("look", "Looks.", look).unwrap();
    let parts = parts.method("take", "Takes.", look).unwrap();
    tool("find", move |arguments, _| {
        let ids = arguments
            .get("ids")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mut result = ToolResult::text("found");
        for id in ids {
            result = result.with_provider(Arc::new(parts.entity(format!("p{id}"), Arc::new(())).unwrap()));
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

fn configured(builder: ConversationBuilder, tools_max: usize) -> ConversationBuilder {
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
    fn declared_tools_only_grow_within_a_turn_and_are_equal_after_a_resume(
        turns in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(operation(), 1..4), 0..5),
            1..4,
        ),
        tools_max in prop::sample::select(vec![8, 12, 128]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let respond = |response: &Vec<Operation>| raw_calls(response.iter().map(Operation::call).collect());
        let steps = turns.iter().flat_map(|turn| turn.iter().map(respond).chain([reply("ok")]));
        let (builder, model) = TestModel::playing(steps.chain([reply("ok")]).collect::<Vec<_>>());
        let mut conversation = configured(builder, tools_max).build().unwrap();
        for _ in &turns {
            let outcome = runtime.block_on(conversation.run("go")).unwrap();
            assert_valid(&outcome.history);
        }
        let (builder, resumed) = TestModel::playing([reply("ok")]);
        let builder = configured(builder, tools_max).history(conversation.history().to_vec());
        let mut resumed_conversation = builder.resume(model.events()).build().unwrap();
        for conversation in [&mut conversation, &mut resumed_conversation] {
            runtime.block_on(conversation.run("on")).unwrap();
        }
        assert_grows(&model, tools_max);
        assert_grows(&resumed, tools_max);
        let last = model.request(model.request_count() - 1);
        prop_assert_eq!(last.serialised, resumed.request(0).serialised, "the same tools are declared");
        let names = |conversation: &Conversation| -> Vec<_> {
            conversation.tools().iter().map(|tool| tool.name.clone()).collect()
        };
        prop_assert_eq!(names(&conversation), names(&resumed_conversation), "the same tools can be called");
    }
}
