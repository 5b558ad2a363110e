//! Approval of calls by the user of a client, in both lifecycles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolwit::tool::{ApprovalMode, ApprovalPolicy, EffectClass, ToolDefinition, ToolId, ToolResult};
use toolwit::{NativeTool, Toolwit};
use toolwit_mcp_server::{McpServer, Principal};

use crate::line_client::{LineClient, meta};

/// A server with a tool that reads and one that pays, which counts its payments.
async fn shop(policy: ApprovalPolicy) -> (McpServer, Arc<AtomicUsize>) {
    let paid = Arc::new(AtomicUsize::new(0));
    let counter = paid.clone();
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer"}}});
    let pay = NativeTool::new("pay", "Pays.", schema, move |_, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::text("paid")) }
    });
    let balance = ToolDefinition::new(
        ToolId::native("balance"),
        "balance",
        "Reads.",
        json!({"type": "object"}),
    );
    let balance = NativeTool::from_definition(balance.with_effect(EffectClass::Read), |_, _| async {
        Ok(ToolResult::text("7"))
    });
    let host = Toolwit::builder()
        .tool(pay.unwrap())
        .tool(balance.unwrap())
        .build()
        .await;
    let principal = Principal::new("local", host.unwrap()).with_approvals(policy);
    (McpServer::for_principal(principal), paid)
}

fn elicitation() -> Value {
    json!({"elicitation": {}})
}

/// Calls `pay` in a session, and answers the question with `answer`. Returns the question and the result.
async fn pay_in_session(client: &mut LineClient, answer: Value) -> (Value, Value) {
    let call = json!({"name": "pay", "arguments": {"amount": 5}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": "pay", "method": "tools/call", "params": call}))
        .await;
    let question = client.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
        .await;
    (question, client.next().await)
}

#[tokio::test]
async fn session_asks_the_user_by_elicitation() {
    let (server, paid) = shop(ApprovalPolicy::default()).await;
    let mut client = LineClient::session_with(server, elicitation()).await;
    assert_eq!(
        client.call("balance").await["result"]["content"][0]["text"],
        "7",
        "a read runs at once"
    );
    let (_, refused) = pay_in_session(&mut client, json!({"action": "decline"})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(paid.load(Ordering::SeqCst), 0);
    let allow = json!({"action": "accept", "content": {"allow": true}});
    let (question, result) = pay_in_session(&mut client, allow).await;
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("`pay`") && message.contains("\"amount\": 5"),
        "{message}"
    );
    assert_eq!(result["result"]["content"][0]["text"], "paid");
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn call_is_refused_where_nobody_can_be_asked_and_tells_how_to_allow_it() {
    let (server, paid) = shop(ApprovalPolicy::default()).await;
    let mut client = LineClient::session_with(server.clone(), json!({})).await;
    let in_session = client.call("pay").await;
    let mut client = LineClient::connected_to(server);
    let params = json!({"name": "pay", "arguments": {}, "_meta": meta()});
    let stateless = client.request("1", "tools/call", params).await;
    for refused in [in_session, stateless] {
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("cannot ask its user") && text.contains("approval policy"),
            "{text}"
        );
    }
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

/// Sends a call of 2026-07-28 whose client can ask its user.
async fn stateless_call(client: &mut LineClient, arguments: Value, answer: Option<(&Value, Value)>) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = elicitation();
    let mut params = json!({"name": "pay", "arguments": arguments, "_meta": meta});
    if let Some((state, answer)) = answer {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"approval": answer});
    }
    client.request("pay", "tools/call", params).await
}

#[tokio::test]
async fn request_without_a_session_is_repeated_with_the_answer() {
    let (server, paid) = shop(ApprovalPolicy::default()).await;
    let mut client = LineClient::connected_to(server);
    let (five, allow) = (
        json!({"amount": 5}),
        json!({"action": "accept", "content": {"allow": true}}),
    );
    let asked = stateless_call(&mut client, five.clone(), None).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(
        asked["result"]["inputRequests"]["approval"]["method"],
        "elicitation/create"
    );
    let state = &asked["result"]["requestState"];
    assert_eq!(paid.load(Ordering::SeqCst), 0);

    let more = stateless_call(&mut client, json!({"amount": 500}), Some((state, allow.clone()))).await;
    assert_eq!(
        more["error"]["code"], -32602,
        "the answer was for other arguments: {more}"
    );
    let paid_once = stateless_call(&mut client, five.clone(), Some((state, allow.clone()))).await;
    assert_eq!(paid_once["result"]["content"][0]["text"], "paid", "{paid_once}");
    let again = stateless_call(&mut client, five.clone(), Some((state, allow.clone()))).await;
    assert_eq!(again["error"]["code"], -32602, "an answer counts once: {again}");
    assert_eq!(paid.load(Ordering::SeqCst), 1);

    let asked = stateless_call(&mut client, five.clone(), None).await;
    let no = json!({"action": "decline"});
    let declined = stateless_call(&mut client, five.clone(), Some((&asked["result"]["requestState"], no))).await;
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    let forged = stateless_call(&mut client, five, Some((&json!("forged"), allow))).await;
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn policy_that_denies_a_tool_is_not_asked_about() {
    let (server, paid) = shop(ApprovalPolicy::of_mode(ApprovalMode::Deny)).await;
    let mut client = LineClient::connected_to(server);
    let denied = stateless_call(&mut client, json!({}), None).await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn annotations_have_the_effect_under_the_policy() {
    let policy = ApprovalPolicy::default().with_effect("native#pay", EffectClass::Idempotent);
    let (server, _) = shop(policy).await;
    let mut session = LineClient::session_with(server.clone(), json!({})).await;
    let in_session = session.request("1", "tools/list", json!({})).await;
    let mut client = LineClient::connected_to(server);
    let stateless = client.request("1", "tools/list", json!({"_meta": meta()})).await;
    for listed in [in_session, stateless] {
        let tools = listed["result"]["tools"].as_array().unwrap();
        let hints = |name: &str| &tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"];
        assert_eq!(*hints("balance"), json!({"readOnlyHint": true}));
        assert_eq!(
            *hints("pay"),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true})
        );
    }
}
