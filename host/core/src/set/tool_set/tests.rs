#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::json;

use super::*;
use crate::{Approval, ApprovalGate, ApprovalRequest, NativeTool, ToolExt};

fn tool(id: &str, names: &[&str]) -> Arc<dyn Tool> {
    let mut definition = ToolDefinition::new(
        ToolId::native(id),
        names[0],
        "returns its id",
        json!({"type": "object"}),
    );
    for name in &names[1..] {
        definition = definition.with_fallback_name(*name);
    }
    let answer = id.to_owned();
    Arc::new(
        NativeTool::from_definition(definition, move |_, _| {
            let answer = answer.clone();
            async move { Ok(ToolResult::text(answer)) }
        })
        .unwrap(),
    )
}

// attack: A11, attack: A12, accept: 113
#[test]
fn tools_with_the_same_candidate_names_get_different_names() {
    let mut set = ToolSet::new();
    let first = set.add(tool("a-b", &["a-b", "calc_a-b"]));
    let second = set.add(tool("other", &["a-b", "calc_a-b"]));
    let third = set.add(tool("third", &["a-b", "calc_a-b"]));
    assert_eq!(first.name().as_str(), "a-b");
    assert_eq!(second.name().as_str(), "calc_a-b");
    assert_eq!(
        third.name().as_str(),
        format!("a-b_{}", crate::text::short_hash("native#third"))
    );
    assert_eq!(set.len(), 3);
}

#[test]
fn a_name_stays_assigned_to_its_id_after_removal() {
    let mut set = ToolSet::new();
    set.add(tool("x", &["look"]));
    set.remove(&ToolId::native("x"));
    assert!(matches!(set.look_up("look"), ToolLookup::Removed(_)));
    assert_ne!(set.add(tool("y", &["look"])).name().as_str(), "look");
    assert_eq!(
        set.add(tool("x", &["look"])),
        AddOutcome::New(ToolName::parse("look").unwrap())
    );
}

// accept: 114
#[test]
fn a_reserved_name_is_not_assigned_to_a_native_tool() {
    let mut set = ToolSet::new();
    set.reserve(ToolName::parse("search_tools").unwrap());
    assert_ne!(
        set.add(tool("search", &["search_tools"])).name().as_str(),
        "search_tools"
    );
}

// accept: 8, attack: E7
#[test]
fn the_lookup_of_an_unknown_name_returns_similar_names() {
    let mut set = ToolSet::new();
    set.add(tool("a", &["search_customer"]));
    set.add(tool("b", &["evaluate"]));
    let ToolLookup::Unknown(nearest) = set.look_up("serch_customers") else {
        panic!("the name must be unknown")
    };
    assert_eq!(
        nearest.iter().map(ToolName::as_str).collect::<Vec<_>>(),
        ["search_customer"]
    );
    for name in ["", &"x".repeat(65), "é", "a\nb"] {
        assert!(matches!(set.look_up(name), ToolLookup::Unknown(_)), "{name:?}");
    }
}

fn names(tools: &ToolSet) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn look_tool(description: &str, schema: serde_json::Value) -> Arc<dyn Tool> {
    let tool = NativeTool::new("look", description, schema, |_, _| async { Ok(ToolResult::text("")) });
    Arc::new(tool.unwrap())
}

// accept: 91
#[test]
fn adding_a_tool_again_replaces_its_definition_and_keeps_name_and_position() {
    let mut set = ToolSet::new();
    let schema = json!({"type": "object"});
    set.add(look_tool("Looks.", schema.clone()));
    set.add(tool("other", &["other"]));
    let before = set.by_id(&ToolId::native("look")).unwrap().definition.clone();
    let look = ToolName::parse("look").unwrap();
    assert_eq!(
        set.add(look_tool("Looks.", schema.clone())),
        AddOutcome::Rebound(look.clone())
    );
    let after = &set.by_id(&ToolId::native("look")).unwrap().definition;
    assert!(Arc::ptr_eq(&before, after), "an equal definition stays the same object");
    let strict = json!({"type": "object", "required": ["at"]});
    assert_eq!(
        set.add(look_tool("Looks.", strict.clone())),
        AddOutcome::Redefined(look.clone())
    );
    assert_eq!(
        *set.by_id(&ToolId::native("look")).unwrap().definition.input_schema,
        strict
    );
    assert_eq!(set.add(look_tool("Looks away.", strict)), AddOutcome::Redefined(look));
    assert_eq!(names(&set), ["look", "other"]);
}

async fn call_for_text(set: &ToolSet, name: &str) -> String {
    let ToolLookup::Found(named) = set.look_up(name) else {
        panic!("the set must have the tool `{name}`")
    };
    match named.tool.call(Arguments::new(), &ToolContext::new()).await {
        Ok(result) => result.for_llm,
        Err(error) => error.to_string(),
    }
}

fn denying_gate() -> Arc<dyn Decorator> {
    Arc::new(ApprovalGate::new(|request: &ApprovalRequest| Approval::Denied {
        reason: format!("`{}` is dangerous", request.name),
    }))
}

// accept: 27, accept: 80
#[tokio::test]
async fn a_decorator_applies_to_every_selected_tool_whenever_the_tool_is_added() {
    let mut set = ToolSet::new();
    set.add(tool("before", &["before"]));
    for id in [
        "native#before",
        "native#erase",
        "native#customer.delete(c-9)",
        "by_name",
    ] {
        set.decorate(&ToolSelector::from(id), denying_gate());
    }
    let erase = || tool("erase", &["erase"]);
    let db = ToolId::native("db");
    set.add(erase());
    set.add(erase());
    set.add(Arc::new(erase().with_identity(
        ToolId::native("erase").within(&db),
        vec!["db_erase".into()],
    )));
    set.add(tool("customer.delete(c-1)", &["customer_c1_delete"]));
    set.add(tool("id", &["by_name"]));
    set.adopt(ToolName::parse("adopted").unwrap(), Arc::new(erase().with_name("gone")));
    for guarded in [
        "before",
        "erase",
        "db_erase",
        "customer_c1_delete",
        "by_name",
        "adopted",
    ] {
        let answer = call_for_text(&set, guarded).await;
        assert!(answer.contains("is dangerous"), "{guarded}: {answer}");
    }
    set.add(tool("customer.deleted(c-1)", &["free"]));
    assert_eq!(call_for_text(&set, "free").await, "customer.deleted(c-1)");
}

#[tokio::test]
async fn an_attached_decorator_is_applied_once_and_also_to_a_later_tool_with_the_id() {
    let mut set = ToolSet::new();
    let id = ToolId::native("pay");
    set.add(tool("pay", &["pay"]));
    let gate = denying_gate();
    set.attach(&id, &gate);
    set.attach(&id, &gate);
    set.add(set.by_id(&id).unwrap().tool.clone());
    assert_eq!(
        decorator_chain(&set.by_id(&id).unwrap().tool).count(),
        2,
        "the gate and the tool"
    );
    set.remove(&id);
    set.add(tool("pay", &["pay"]));
    assert!(call_for_text(&set, "pay").await.contains("is dangerous"));
}

#[test]
fn an_excluded_tool_cannot_be_added_in_any_form_until_it_is_admitted() {
    let mut set = ToolSet::new();
    let pay = || tool("pay", &["pay"]);
    let pay_in_facade = || -> Arc<dyn Tool> {
        let id = ToolId::native("pay").within(&ToolId::native("bank"));
        Arc::new(pay().with_identity(id, vec!["bank_pay".into()]))
    };
    set.add(pay());
    set.add(pay_in_facade());
    let id = ToolId::native("pay");
    assert_eq!(set.exclude(&id).len(), 2);
    assert_eq!(set.add(pay()), AddOutcome::Excluded(ToolName::parse("pay").unwrap()));
    assert!(matches!(set.add(pay_in_facade()), AddOutcome::Excluded(_)));
    assert!(!set.adopt(ToolName::parse("new").unwrap(), Arc::new(pay().with_name("new"))));
    assert!(set.is_empty() && matches!(set.look_up("pay"), ToolLookup::Removed(_)));
    assert!(set.admit(&id) && !set.admit(&id));
    assert!(matches!(set.add(pay()), AddOutcome::New(_)));
}

#[test]
fn selectors_distinguish_ids_names_and_late_tools() {
    let erase = tool("erase", &["wipe"]);
    let selects = |text: &str| ToolSelector::from(text).selects(&erase, ToolName::parse("db_wipe").as_ref());
    assert!(
        selects("native#erase") && selects("wipe") && selects("db_wipe") && ToolSelector::all().selects(&erase, None)
    );
    assert!(!selects("erase") && !selects("native#wipe") && !selects("#erase"));
    assert!(ToolSelector::later("x").is_late() && !ToolSelector::from("x").is_late());
}

#[tokio::test]
async fn when_a_tool_is_added_again_its_guards_stay_and_its_other_decorators_do_not() {
    let mut set = ToolSet::new();
    let guarded = tool("pay", &["pay"]).with_approval(|_: &ApprovalRequest| Approval::Denied { reason: "no".into() });
    set.add(Arc::new(guarded));
    set.add(tool("pay", &["pay"]));
    assert!(call_for_text(&set, "pay").await.contains("not approved"));
    set.add(Arc::new(tool("ask", &["ask"]).return_direct()));
    set.add(tool("ask", &["ask"]));
    assert_eq!(
        decorator_chain(&set.by_id(&ToolId::native("ask")).unwrap().tool).count(),
        1
    );
}

// accept: 80
#[test]
fn the_guards_of_a_removed_tool_are_kept() {
    let mut set = ToolSet::new();
    set.decorate(&ToolSelector::from("pay"), denying_gate());
    set.add(tool("pay", &["pay"]));
    set.add(Arc::new(tool("ask", &["ask"]).return_direct()));
    for (id, guard_count) in [("pay", 1), ("ask", 0)] {
        let id = ToolId::native(id);
        assert_eq!(set.guards(&id).len(), guard_count);
        set.remove(&id);
        assert_eq!(set.guards(&id).len(), guard_count, "{id}");
    }
}

// accept: 80
#[test]
fn a_tool_outside_the_set_has_the_decorators_of_the_name_that_it_would_get() {
    let mut set = ToolSet::new();
    set.add(tool("search", &["search"]));
    set.decorate(&ToolSelector::later("github_search"), denying_gate());
    let github_search = || tool("github/search", &["search", "github_search"]);
    assert!(set.decorated(github_search()).decorator().is_some());
    let other = tool("other", &["other", "github_search"]);
    assert!(set.decorated(other).decorator().is_none(), "its name would be `other`");
}

#[test]
fn the_guards_of_a_method_apply_to_the_tool_that_binds_it_to_an_entity() {
    let mut set = ToolSet::new();
    set.add(tool("pay", &["pay"]));
    let guard = denying_gate();
    let not_a_guard = tool("any", &["any"]).return_direct().decorator().unwrap().clone();
    for decorator in [&guard, &not_a_guard] {
        set.attach(&ToolId::native("pay"), decorator);
    }
    let method = set.decorated(tool("pay(order_o1)", &["order_o1_pay"]));
    let layers: Vec<_> = decorator_chain(&method)
        .filter_map(|layer| layer.decorator().cloned())
        .collect();
    assert_eq!(layers.len(), 1, "only the guard applies to the method");
    assert!(Arc::ptr_eq(&layers[0], &guard));
    let unrelated = set.decorated(tool("pay_later(order_o1)", &["order_o1_pay_later"]));
    assert!(unrelated.decorator().is_none());
}
