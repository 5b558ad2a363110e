//! Questions of tools to the user of a client, through the respondent of their context.

use serde_json::{Value, json};
use toolwit::tool::{Answer, Form, Question, ToolResult, Unanswered};
use toolwit::{NativeTool, ToolContext, Toolwit};
use toolwit_mcp_server::McpServer;

use crate::line_client::{LineClient, meta};

/// A server with a tool that asks for the name of the user, as the host does for a plugin.
async fn asking_server() -> McpServer {
    let schema = json!({"type": "object", "properties": {}});
    let ask = NativeTool::new("ask", "Asks.", schema, |_, context: ToolContext| async move {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let form = Form::parse("Your name?\nAllow the call of `pay`?", &schema.to_string()).unwrap();
        let question = Question::new("shop", "name", form);
        let respondent = context.respondent().unwrap();
        Ok(match respondent.answer(&question, &context).await {
            Ok(Answer::Accepted(values)) => ToolResult::value(Value::Object(values)),
            Ok(answer) => ToolResult::text(format!("{answer:?}")),
            Err(Unanswered::Unavailable(reason)) => ToolResult::text(format!("unavailable: {reason}")),
            Err(_) => ToolResult::error("the call is repeated"),
        })
    });
    let host = Toolwit::builder().tool(ask.unwrap()).build().await.unwrap();
    McpServer::new(host)
}

fn call() -> Value {
    json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "ask"}})
}

// attack: M6
#[tokio::test]
async fn a_session_shows_the_question_under_the_name_of_the_plugin() {
    let mut client = LineClient::session_with(asking_server().await, json!({"elicitation": {}})).await;
    for (result, expected) in [
        (
            json!({"action": "accept", "content": {"name": "Ada"}}),
            r#"{"name":"Ada"}"#,
        ),
        (json!({"action": "decline"}), "Declined"),
        (json!({"action": "cancel"}), "Cancelled"),
    ] {
        client.send(&call()).await;
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(
            question["params"]["message"],
            "The plugin `shop` asks:\n> Your name?\n> Allow the call of `pay`?"
        );
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["name"]));
        client
            .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
            .await;
        assert_eq!(client.next().await["result"]["content"][0]["text"], expected);
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_its_user_is_not_asked() {
    let mut client = LineClient::session_with(asking_server().await, json!({})).await;
    client.send(&call()).await;
    let answer = client.next().await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "unavailable: this client cannot ask its user", "{answer}");
}

async fn stateless_call(client: &mut LineClient, more: Value) -> Value {
    let mut params = json!({"name": "ask", "arguments": {}, "_meta": meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.request("call", "tools/call", params).await
}

#[tokio::test]
async fn a_request_without_a_session_is_repeated_with_the_answer_under_the_key_of_the_question() {
    let mut client = LineClient::connected_to(asking_server().await);
    let first = stateless_call(&mut client, json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let requests = first["result"]["inputRequests"].as_object().unwrap();
    let request = &requests["name"];
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .starts_with("The plugin `shop` asks:")
    );
    let accepted = json!({"action": "accept", "content": {"name": "Ada"}});
    let state = &first["result"]["requestState"];
    let other_key = json!({"requestState": state, "inputResponses": {"other": accepted}});
    let again = stateless_call(&mut client, other_key).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let state = &again["result"]["requestState"];
    let answered = json!({"requestState": state, "inputResponses": {"name": accepted}});
    let last = stateless_call(&mut client, answered).await;
    assert_eq!(last["result"]["content"][0]["text"], r#"{"name":"Ada"}"#, "{last}");
}
