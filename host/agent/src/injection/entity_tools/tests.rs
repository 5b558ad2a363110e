#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::injection::{CompletedCall, Entities, write_entity_tool_names};
use toolwit_core::{Arguments, CallUsage, NativeTool, ToolContext, ToolDefinition, ToolName, ToolResult, ToolSet};

/// An entity whose properties the test sets.
#[derive(Clone)]
struct TestEntity {
    prefix: &'static str,
    namespace: &'static str,
    id: Option<String>,
    method_ids: Vec<ToolId>,
    rebinding: Rebinding,
    version: &'static str,
}

fn entity(prefix: &'static str, id: &str) -> TestEntity {
    TestEntity {
        prefix,
        namespace: "native",
        id: Some(id.to_owned()),
        method_ids: vec![ToolId::native(&format!("{prefix}.get")).bound_to(id)],
        rebinding: Rebinding::Keep,
        version: "",
    }
}

impl ToolProvider for TestEntity {
    fn prefix(&self) -> &str {
        self.prefix
    }

    fn instance_id(&self) -> Option<String> {
        self.id.clone()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.method_ids.iter().map(tool).collect()
    }

    fn rebinding(&self) -> Rebinding {
        self.rebinding
    }

    fn namespace(&self) -> &str {
        self.namespace
    }

    fn version(&self) -> &str {
        self.version
    }
}

fn tool(id: &ToolId) -> Arc<dyn Tool> {
    let definition = ToolDefinition::new(id.clone(), "get", "gets", json!({"type": "object"}));
    Arc::new(NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("")) }).unwrap())
}

/// A conversation that applies injections as the loop does.
#[derive(Default)]
struct TestConversation {
    tools: ToolSet,
    entities: Entities,
}

impl TestConversation {
    fn return_entities(&mut self, entities: impl IntoIterator<Item = TestEntity>) -> Injection {
        self.return_entities_from(&ToolId::native("search"), entities)
    }

    fn return_entities_from(
        &mut self,
        called_tool: &ToolId,
        entities: impl IntoIterator<Item = TestEntity>,
    ) -> Injection {
        let mut result = ToolResult::text("");
        for entity in entities {
            result = result.with_provider(Arc::new(entity));
        }
        let name = ToolName::parse("search").unwrap();
        let call = CompletedCall::new("1", name, Arguments::new(), tool(called_tool), result);
        let context = InjectionContext::new(&[], &self.tools, &self.entities, &call, 1);
        let injection = EntityTools.evaluate(&context);
        for tool in injection.add.clone() {
            self.tools.add(tool);
        }
        for discovery in &injection.discovered {
            self.entities.record(discovery);
        }
        injection
    }
}

fn bindings(injection: &Injection) -> Vec<EntityBinding> {
    injection.discovered.iter().map(|discovery| discovery.binding).collect()
}

// accept: 29
#[test]
fn each_entity_of_a_list_adds_its_tools() {
    let injection = TestConversation::default().return_entities(["c-1", "c-2", "c-3"].map(|id| entity("customer", id)));
    assert_eq!(injection.add.len(), 3);
    assert_eq!(bindings(&injection), [EntityBinding::New; 3]);
}

// accept: 37, accept: 38
#[test]
fn an_entity_that_is_returned_again_adds_no_tools() {
    let mut conversation = TestConversation::default();
    conversation.return_entities([entity("customer", "c-1")]);
    let second_injection = conversation.return_entities([entity("customer", "c-1"), entity("customer", "c-2")]);
    assert_eq!(bindings(&second_injection), [EntityBinding::Kept, EntityBinding::New]);
    assert_eq!(second_injection.add.len(), 1);
    assert_eq!(conversation.entities.len(), 2);
}

// accept: 37
#[test]
fn an_entity_with_latest_rebinding_is_bound_to_its_newest_instance() {
    let mut conversation = TestConversation::default();
    let quote = TestEntity {
        rebinding: Rebinding::Latest,
        ..entity("quote", "q-1")
    };
    conversation.return_entities([quote.clone()]);
    let second_injection = conversation.return_entities([quote]);
    assert_eq!(bindings(&second_injection), [EntityBinding::Rebound]);
    assert_eq!(second_injection.add.len(), 1);
    assert_eq!(conversation.tools.len(), 1, "rebinding does not add a second tool");
}

#[test]
fn an_entity_that_occurs_twice_in_one_result_is_added_once() {
    let mut conversation = TestConversation::default();
    let injection = conversation.return_entities([entity("customer", "c-1"), entity("customer", "c-1")]);
    assert_eq!(bindings(&injection), [EntityBinding::New, EntityBinding::Kept]);
    assert_eq!(injection.add.len(), 1);
}

// accept: 37
#[test]
fn an_entity_keeps_its_tools_when_another_type_has_the_same_tool_ids() {
    let mut conversation = TestConversation::default();
    let with_shared_ids = |namespace, prefix, id| TestEntity {
        namespace,
        method_ids: vec![ToolId::native("get")],
        ..entity(prefix, id)
    };
    conversation.return_entities([
        with_shared_ids("native", "customer", "1"),
        with_shared_ids("native", "order", "1"),
    ]);
    conversation.return_entities([with_shared_ids("other", "customer", "1")]);
    assert_eq!(conversation.tools.len(), 3);
    let second_injection = conversation.return_entities([
        with_shared_ids("native", "order", "1"),
        with_shared_ids("native", "customer", "1"),
    ]);
    assert!(second_injection.add.is_empty(), "{second_injection:?}");
    assert_eq!(conversation.tools.len(), 3);
}

// accept: 31
#[test]
fn an_empty_or_overlong_id_is_rejected_with_the_reason() {
    let overlong_id = "x".repeat(ENTITY_ID_BYTES_MAX + 1);
    let injection = TestConversation::default().return_entities([
        entity("customer", ""),
        entity("customer", &overlong_id),
        entity("customer", "ok"),
    ]);
    assert_eq!(injection.add.len(), 1);
    let reasons: Vec<_> = injection
        .rejected
        .iter()
        .map(|rejected| rejected.reason.as_str())
        .collect();
    assert_eq!(reasons, ["its id is empty", "its id has 257 bytes; the limit is 256"]);
    assert_eq!(injection.rejected[0].prefix, "customer");
}

// accept: 31, accept: 48
#[test]
fn an_object_without_tools_and_a_result_without_objects_change_nothing() {
    let without_methods = TestEntity {
        method_ids: Vec::new(),
        ..entity("note", "n-1")
    };
    assert!(TestConversation::default().return_entities([without_methods]).is_none());
    assert!(TestConversation::default().return_entities([]).is_none());
}

#[test]
fn an_object_without_an_id_is_recognised_by_its_tools() {
    let mut conversation = TestConversation::default();
    let without_id = |tool: &str| TestEntity {
        id: None,
        method_ids: vec![ToolId::native(tool)],
        ..entity("cursor", "")
    };
    assert_eq!(
        bindings(&conversation.return_entities([without_id("cursor.next(#1)")])),
        [EntityBinding::New]
    );
    assert_eq!(
        bindings(&conversation.return_entities([without_id("cursor.next(#2)")])),
        [EntityBinding::New]
    );
    assert_eq!(
        bindings(&conversation.return_entities([without_id("cursor.next(#1)")])),
        [EntityBinding::Kept]
    );
    assert_eq!((conversation.tools.len(), conversation.entities.len()), (2, 2));
}

// accept: 34, accept: 40
#[test]
fn a_walk_along_entities_of_one_type_has_no_last_step() {
    let mut conversation = TestConversation::default();
    let mut called_tool = ToolId::native("search");
    for step in 0..50 {
        let node = entity("node", &step.to_string());
        let injection = conversation.return_entities_from(&called_tool, [node.clone()]);
        assert_eq!(bindings(&injection), [EntityBinding::New], "step {step}");
        assert_eq!(injection.add.len(), 1);
        called_tool = node.method_ids[0].clone();
    }
    let back = conversation.return_entities_from(&called_tool, [entity("node", "1")]);
    assert_eq!(bindings(&back), [EntityBinding::Kept]);
}

// accept: 37
#[test]
fn an_entity_that_another_version_of_its_code_returns_is_one_object_under_the_same_names() {
    let mut conversation = TestConversation::default();
    let method = |name: &str, id: &str| ToolId::native(&format!("cart.{name}")).bound_to(id);
    let of_version = |version, id: &str, methods: &[&str]| TestEntity {
        version,
        method_ids: methods.iter().map(|name| method(name, id)).collect(),
        ..entity("cart", id)
    };
    conversation.return_entities([
        of_version("1", "c-1", &["add", "drop"]),
        of_version("1", "c-2", &["add"]),
    ]);
    let names: Vec<_> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    let again = conversation.return_entities([of_version("1", "c-1", &["add", "drop"])]);
    assert_eq!(bindings(&again), [EntityBinding::Kept]);

    let replaced = conversation.return_entities([of_version("2", "c-1", &["add", "clear"])]);
    assert_eq!(bindings(&replaced), [EntityBinding::Rebound]);
    assert_eq!(replaced.add.len(), 2, "each method acts on the new object");
    assert_eq!(
        replaced.remove,
        [method("drop", "c-1")],
        "the new version does not have it"
    );
    let kept = conversation.return_entities([of_version("2", "c-1", &["add", "clear"])]);
    assert_eq!(bindings(&kept), [EntityBinding::Kept]);
    let other = conversation.return_entities([of_version("2", "c-2", &["add"])]);
    assert_eq!(
        bindings(&other),
        [EntityBinding::Rebound],
        "also after another entity of the type"
    );
    let new_names: Vec<_> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(new_names.starts_with(&names[..1]), "{new_names:?}");
}

// accept: 37, accept: 38
#[test]
fn a_group_replaces_the_members_of_another_version() {
    let mut conversation = TestConversation::default();
    let many = |version: &'static str| {
        let count = ENTITIES_WITH_OWN_TOOLS_MAX + 1;
        (0..count).map(move |number| TestEntity {
            version,
            ..entity("row", &number.to_string())
        })
    };
    conversation.return_entities(many("1"));
    assert_eq!(
        bindings(&conversation.return_entities(many("1"))),
        [EntityBinding::Kept]
    );
    let replaced = conversation.return_entities(many("2"));
    assert_eq!(bindings(&replaced), [EntityBinding::Rebound]);
    let group = conversation.entities.group("native", "row").unwrap();
    assert!(group.contains("0"));
    let single = conversation.return_entities([TestEntity {
        version: "3",
        ..entity("row", "0")
    }]);
    assert_eq!(bindings(&single), [EntityBinding::Rebound], "returned alone");
}

// accept: 20, accept: 26
#[test]
fn the_value_of_a_call_is_its_structured_value_or_its_text_parsed_as_json() {
    let call = |result| {
        CompletedCall::new(
            "1",
            ToolName::parse("x").unwrap(),
            Arguments::new(),
            tool(&ToolId::native("x")),
            result,
        )
    };
    let mut structured_result = ToolResult::value(json!({"a": 1}));
    structured_result.usage = Some(CallUsage::default());
    assert_eq!(call(structured_result).value().unwrap().into_owned(), json!({"a": 1}));
    assert_eq!(
        call(ToolResult::text("[1, 2]")).value().unwrap().into_owned(),
        json!([1, 2])
    );
    assert_eq!(call(ToolResult::text("plain words")).value(), None);
}

// accept: 27
#[test]
fn the_decorator_chain_of_a_call_ends_with_the_innermost_tool() {
    let inner = tool(&ToolId::native("x"));
    let middle = inner.clone().with_identity(ToolId::native("inner"), Vec::new());
    let outer: Arc<dyn Tool> = Arc::new(middle.with_identity(ToolId::native("outer"), Vec::new()));
    let call = CompletedCall::new(
        "1",
        ToolName::parse("x").unwrap(),
        Arguments::new(),
        outer,
        ToolResult::text(""),
    );
    assert_eq!(call.decorator_chain().count(), 3);
    assert!(Arc::ptr_eq(call.decorator_chain().last().unwrap(), &inner));
}

/// Returns just enough native carts to form a group, with the ids `n-0`, `n-1` and so on.
fn carts() -> Vec<TestEntity> {
    let numbers = 0..=ENTITIES_WITH_OWN_TOOLS_MAX;
    numbers.map(|n| entity("cart", &format!("n-{n}"))).collect()
}

/// Returns a cart of a plugin: an entity with the prefix of the native carts, and another namespace.
fn plugin_cart(id: &str) -> TestEntity {
    TestEntity {
        namespace: "shop",
        method_ids: vec![ToolId::plugin("shop", None, "cart.get").bound_to(id)],
        ..entity("cart", id)
    }
}

/// Creates a result that returns `entities`, with one JSON object for each of `ids` as its value. Writes the names of the tools
/// into the result. Returns the list `available_tools` of each JSON object, and the name of the first tool of each discovered
/// entity or group.
fn listed_tools(entities: Vec<TestEntity>, ids: &[&str]) -> (Vec<Option<Value>>, Vec<String>) {
    let mut conversation = TestConversation::default();
    let discovered = conversation.return_entities(entities.clone()).discovered;
    let objects_in_value = ids
        .iter()
        .map(|id| json!({"type": "cart", "id": id, "available_tools": ["guess"]}));
    let result = ToolResult::value(objects_in_value.collect());
    let mut result = entities
        .into_iter()
        .fold(result, |result, entity| result.with_provider(Arc::new(entity)));
    write_entity_tool_names(&mut result, &discovered, &conversation.entities, &conversation.tools);
    let objects: Vec<Value> = serde_json::from_str(&result.content()).unwrap();
    let lists = objects.iter().map(|object| object.get("available_tools").cloned());
    let first_tool = |entity: &DiscoveredEntity| conversation.tools.by_id(&entity.tools[0]).unwrap().name.to_string();
    (lists.collect(), discovered.iter().map(first_tool).collect())
}

// accept: 29, accept: 39
#[test]
fn a_result_lists_the_tools_of_the_namespace_of_each_entity() {
    let plugin_carts = (0..=ENTITIES_WITH_OWN_TOOLS_MAX).map(|n| plugin_cart(&format!("s-{n}")));
    let two_groups = carts().into_iter().chain(plugin_carts).collect();
    let (lists, names) = listed_tools(two_groups, &["n-0", "n-1", "s-0"]);
    assert_eq!(names.len(), 2, "two groups with the same prefix");
    assert_ne!(names[0], names[1]);
    let expected = [Some(json!([names[0]])), None, Some(json!([names[1]]))];
    assert_eq!(lists, expected, "each group lists its tools at its first member");

    let group_and_plugin_cart = carts().into_iter().chain([plugin_cart("n-0")]).collect();
    let (lists, names) = listed_tools(group_and_plugin_cart, &["n-0", "n-0"]);
    let [plugin_cart_tool, group_tool] = names.as_slice() else {
        unreachable!("{names:?}")
    };
    assert_eq!(lists, [Some(json!([group_tool])), Some(json!([plugin_cart_tool]))]);
}

#[tokio::test]
async fn a_shared_method_refuses_a_member_without_the_method_and_an_unknown_id() {
    let without_method = TestEntity {
        method_ids: vec![ToolId::native("cart.empty").bound_to("other")],
        ..entity("cart", "other")
    };
    let members = carts().into_iter().chain([without_method]);
    let injection = TestConversation::default().return_entities(members);
    let shared_method = &injection.add[0];
    let call = async |id: &str| {
        let arguments = json!({ "cart_id": id }).as_object().cloned().unwrap();
        let result = shared_method.call(arguments, &ToolContext::new()).await;
        result.map(drop).map_err(|error| error.report().message.clone())
    };
    assert_eq!(call("n-1").await, Ok(()));
    let without_method_error = call("other").await.unwrap_err();
    assert_eq!(
        without_method_error,
        "/cart_id: the `cart` with the id `other` does not have this method"
    );
    let unknown_id_error = call("nobody").await.unwrap_err();
    assert_eq!(
        unknown_id_error,
        "/cart_id: the `cart` with the id `nobody` does not exist"
    );
}
