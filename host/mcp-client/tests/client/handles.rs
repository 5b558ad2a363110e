//! Handles of a server as entities.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwit_agent::model::ScriptedModel;
use toolwit_agent::{Conversation, ToolSource};
use toolwit_core::limits::ENTITIES_WITH_OWN_TOOLS_MAX;
use toolwit_core::{
    AddOutcome, Approval, ApprovalGate, ApprovalRequest, ErrorKind, Tool, ToolContext, ToolExt, ToolId, ToolResult,
    ToolSelector, ToolSet,
};
use toolwit_mcp_client::{ClientOptions, McpServer};

use crate::{arguments, call, config, tool};

fn shop(behaviour: &str) -> McpServer {
    McpServer::new(config(behaviour).with_handles(["order_id"]), ClientOptions::default())
}

fn methods(result: &ToolResult) -> Vec<Arc<dyn Tool>> {
    result.providers.iter().flat_map(|entity| entity.tools()).collect()
}

/// Returns the method that cancels the order `o-1`.
async fn cancel_method(server: &McpServer) -> Arc<dyn Tool> {
    let created = call(server, "create_order", json!({"item": "1"})).await.unwrap();
    methods(&created).remove(0)
}

/// Runs a script in a conversation with the tools of a server, and returns what the model read.
async fn read(server: &McpServer, gate: Option<ApprovalGate>, script: ScriptedModel) -> String {
    let model = Arc::new(script.answer("done"));
    let mut builder = Conversation::builder().tools(server.tools(&ToolContext::new()).await.unwrap());
    if let Some(gate) = gate {
        builder = builder.decorate(ToolSelector::from("mcp:test#cancel_order"), gate);
    }
    let mut conversation = builder.model(model.clone()).build().unwrap();
    conversation.turn("go").run().await.unwrap();
    format!("{:?}", model.requests().pop().unwrap().messages)
}

fn cancel(order: &str) -> Value {
    json!({"order_id": order, "reason": "late"})
}

fn two_orders() -> ScriptedModel {
    ScriptedModel::new()
        .call("create_order", json!({"item": "1"}))
        .call("create_order", json!({"item": "2"}))
        .call("order_o1_cancel_order", cancel("o-1"))
        .call("order_o2_cancel_order", cancel("o-2"))
}

fn denial() -> ApprovalGate {
    ApprovalGate::new(|request: &ApprovalRequest| Approval::Denied {
        reason: format!("denied for {}", request.arguments["order_id"]),
    })
}

#[tokio::test]
async fn two_orders_of_a_conversation_have_methods_with_their_handles() {
    let seen = read(&shop("shop"), None, two_orders()).await;
    let cancelled = seen.matches("cancel_order {").count();
    assert!(cancelled == 2, "{seen}");
    let other = ScriptedModel::new()
        .call("create_order", json!({"item": "1"}))
        .call("order_o1_cancel_order", cancel("o-2"));
    let seen = read(&shop("shop"), None, other).await;
    assert!(!seen.contains("cancel_order {") && seen.contains("order_id"), "{seen}");
}

#[tokio::test]
async fn an_approval_of_a_tool_covers_the_method_and_sees_the_handle() {
    let seen = read(&shop("shop"), Some(denial()), two_orders()).await;
    assert!(!seen.contains("cancel_order {"), "{seen}");
    assert!(seen.contains("denied for") && seen.contains("o-2"), "{seen}");
}

#[tokio::test]
async fn exclusions_and_guards_of_a_tool_cover_its_methods() {
    let server = shop("shop");
    let context = ToolContext::new();
    let method = cancel_method(&server).await;
    assert_eq!(method.definition().name(), "order_o1_cancel_order");
    let mut set = ToolSet::new();
    set.exclude(&ToolId::from_text("mcp:test#cancel_order"));
    assert!(matches!(set.add(method.clone()), AddOutcome::Excluded(_)));
    let mut set = ToolSet::new();
    set.add(method.clone());
    assert!(set.guards(&method.definition().id).is_empty());
    // A gate that is a part of the tool itself, not of the conversation.
    let mut set = ToolSet::new();
    set.add(Arc::new(
        tool(&server, "cancel_order", &context).await.with_decorator(denial()),
    ));
    set.add(method.clone());
    assert_eq!(set.guards(&method.definition().id).len(), 1);
}

#[tokio::test]
async fn results_bring_entities_only_where_configuration_and_schemas_agree() {
    let found = call(&shop("shop"), "list_orders", json!({})).await.unwrap();
    let ids: Vec<_> = found
        .providers
        .iter()
        .map(|entity| entity.instance_id().unwrap())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    let failed = call(&shop("shop"), "create_order", json!({"item": "nothing"}))
        .await
        .unwrap();
    assert!(failed.is_error() && failed.providers.is_empty());
    for server in [crate::server("shop"), shop("shop-without-schema")] {
        let found = call(&server, "create_order", json!({"item": "1"})).await.unwrap();
        assert!(found.value.is_some() && found.providers.is_empty());
    }
    let context = ToolContext::new();
    let unused = shop("shop-without-schema").report(&context).await.unwrap().withheld;
    assert!(unused[0].1.contains("no tool returns it"), "{unused:?}");
    assert!(shop("shop").report(&context).await.unwrap().withheld.is_empty());
}

// attack: G9
#[tokio::test]
async fn hostile_handles_bring_a_limited_number_of_entities_with_plain_ids() {
    let found = call(&shop("shop-hostile"), "list_orders", json!({})).await.unwrap();
    let ids: Vec<_> = found
        .providers
        .iter()
        .map(|entity| entity.instance_id().unwrap())
        .collect();
    let first: Vec<_> = (0..ENTITIES_WITH_OWN_TOOLS_MAX).map(|at| at.to_string()).collect();
    assert_eq!(ids, first);
}

#[tokio::test]
async fn a_method_of_a_withheld_tool_is_refused() {
    let context = ToolContext::new();
    let server = shop("shop-changes");
    // The list of the server changes with the first order.
    let method = cancel_method(&server).await;
    assert!(method.call(arguments(&cancel("o-1")), &context).await.is_ok());
    server.tools(&context).await.unwrap();
    assert_eq!(server.changed_tools(&context), ["cancel_order"]);
    let error = method.call(arguments(&cancel("o-1")), &context).await.unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::ToolUnavailable);
}
