#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::injection::{CompletedCall, Entities};
use toolwit_core::{Arguments, CallUsage, NativeTool, ToolDefinition, ToolName, ToolResult, ToolSet};

/// An entity whose properties the test sets.
#[derive(Clone)]
struct Thing {
    prefix: &'static str,
    namespace: &'static str,
    id: Option<String>,
    ids: Vec<ToolId>,
    rebinding: Rebinding,
    depth: u32,
}

fn thing(prefix: &'static str, id: &str) -> Thing {
    Thing {
        prefix,
        namespace: "native",
        id: Some(id.to_owned()),
        ids: vec![ToolId::native(&format!("{prefix}.get")).bound_to(id)],
        rebinding: Rebinding::Keep,
        depth: 1,
    }
}

impl ToolProvider for Thing {
    fn prefix(&self) -> &str {
        self.prefix
    }

    fn instance_id(&self) -> Option<String> {
        self.id.clone()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.ids.iter().map(tool).collect()
    }

    fn rebinding(&self) -> Rebinding {
        self.rebinding
    }

    fn namespace(&self) -> &str {
        self.namespace
    }

    fn depth(&self) -> u32 {
        self.depth
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
    fn return_entities(&mut self, things: impl IntoIterator<Item = Thing>) -> Injection {
        self.return_entities_from(&ToolId::native("search"), things)
    }

    fn return_entities_from(&mut self, caller: &ToolId, things: impl IntoIterator<Item = Thing>) -> Injection {
        let mut result = ToolResult::text("");
        for thing in things {
            result = result.with_provider(Arc::new(thing));
        }
        let name = ToolName::parse("search").unwrap();
        let call = CompletedCall::new("1", name, Arguments::new(), tool(caller), result);
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
    injection.discovered.iter().map(|found| found.binding).collect()
}

// accept: 29
#[test]
fn each_entity_of_a_list_adds_its_tools() {
    let injection = TestConversation::default().return_entities(["c-1", "c-2", "c-3"].map(|id| thing("customer", id)));
    assert_eq!(injection.add.len(), 3);
    assert_eq!(bindings(&injection), [EntityBinding::New; 3]);
}

// accept: 37, accept: 38
#[test]
fn the_same_entity_again_adds_nothing() {
    let mut conversation = TestConversation::default();
    conversation.return_entities([thing("customer", "c-1")]);
    let again = conversation.return_entities([thing("customer", "c-1"), thing("customer", "c-2")]);
    assert_eq!(bindings(&again), [EntityBinding::Kept, EntityBinding::New]);
    assert_eq!(again.add.len(), 1);
    assert_eq!(conversation.entities.len(), 2);
}

// accept: 37
#[test]
fn a_type_with_latest_rebinding_is_bound_to_the_newest_instance() {
    let mut conversation = TestConversation::default();
    let newest = Thing {
        rebinding: Rebinding::Latest,
        ..thing("quote", "q-1")
    };
    conversation.return_entities([newest.clone()]);
    let again = conversation.return_entities([newest]);
    assert_eq!(bindings(&again), [EntityBinding::Rebound]);
    assert_eq!(again.add.len(), 1);
    assert_eq!(conversation.tools.len(), 1, "rebinding does not add a second tool");
}

#[test]
fn an_entity_that_occurs_twice_in_one_result_is_added_once() {
    let mut conversation = TestConversation::default();
    let injection = conversation.return_entities([thing("customer", "c-1"), thing("customer", "c-1")]);
    assert_eq!(bindings(&injection), [EntityBinding::New, EntityBinding::Kept]);
    assert_eq!(injection.add.len(), 1);
}

// accept: 37
#[test]
fn an_entity_keeps_its_tools_when_another_type_has_the_same_tool_ids() {
    let mut conversation = TestConversation::default();
    let with_shared_ids = |namespace, prefix, id| Thing {
        namespace,
        ids: vec![ToolId::native("get")],
        ..thing(prefix, id)
    };
    conversation.return_entities([
        with_shared_ids("native", "customer", "1"),
        with_shared_ids("native", "order", "1"),
    ]);
    conversation.return_entities([with_shared_ids("other", "customer", "1")]);
    assert_eq!(conversation.tools.len(), 3);
    let again = conversation.return_entities([
        with_shared_ids("native", "order", "1"),
        with_shared_ids("native", "customer", "1"),
    ]);
    assert!(again.add.is_empty(), "{again:?}");
    assert_eq!(conversation.tools.len(), 3);
}

// accept: 31
#[test]
fn an_empty_or_overlong_id_is_rejected_with_the_reason() {
    let long = "x".repeat(ENTITY_ID_BYTES_MAX + 1);
    let injection = TestConversation::default().return_entities([
        thing("customer", ""),
        thing("customer", &long),
        thing("customer", "ok"),
    ]);
    assert_eq!(injection.add.len(), 1);
    let reasons: Vec<_> = injection.rejected.iter().map(|r| r.reason.as_str()).collect();
    assert_eq!(reasons, ["its id is empty", "its id has 257 bytes; the limit is 256"]);
    assert_eq!(injection.rejected[0].prefix, "customer");
}

// accept: 31, accept: 48
#[test]
fn an_object_without_tools_and_a_result_without_objects_change_nothing() {
    let bare = Thing {
        ids: Vec::new(),
        ..thing("note", "n-1")
    };
    assert!(TestConversation::default().return_entities([bare]).is_none());
    assert!(TestConversation::default().return_entities([]).is_none());
}

#[test]
fn an_object_without_an_id_is_recognised_by_its_tools() {
    let mut conversation = TestConversation::default();
    let without_id = |tool: &str| Thing {
        id: None,
        ids: vec![ToolId::native(tool)],
        ..thing("cursor", "")
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
fn entities_deeper_than_the_limit_are_rejected() {
    let mut conversation = TestConversation::default();
    let mut caller = ToolId::native("search");
    for level in 1..=ENTITY_DEPTH_MAX {
        let next = thing("node", &level.to_string());
        let injection = conversation.return_entities_from(&caller, [next.clone()]);
        assert_eq!(injection.discovered[0].depth, level);
        caller = next.ids[0].clone();
    }
    let injection = conversation.return_entities_from(&caller, [thing("node", "9"), thing("node", "1")]);
    assert_eq!(injection.rejected.len(), 1);
    assert!(injection.rejected[0].reason.contains("the limit is 8"), "{injection:?}");
    assert_eq!(
        bindings(&injection),
        [EntityBinding::Kept],
        "a cycle back to an earlier entity is allowed"
    );
    let from_plugin = Thing {
        depth: 9,
        ..thing("node", "far")
    };
    assert_eq!(conversation.return_entities([from_plugin]).rejected.len(), 1);
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
    let mut typed = ToolResult::value(json!({"a": 1}));
    typed.usage = Some(CallUsage::default());
    assert_eq!(call(typed).value().unwrap().into_owned(), json!({"a": 1}));
    assert_eq!(
        call(ToolResult::text("[1, 2]")).value().unwrap().into_owned(),
        json!([1, 2])
    );
    assert_eq!(call(ToolResult::text("plain words")).value(), None);
}

// accept: 27
#[test]
fn decorated_tools_are_found_behind_their_decorators() {
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
