//! Tools that ask the client and write to its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, ToolContext, Toolwit};
use toolwit_mcp_server::{ClientRequest, LogLevel, McpClient, McpServer, ServedContent};

use crate::line_client::{LineClient, meta};

fn form(question: &str) -> ClientRequest {
    ClientRequest::Form {
        message: question.to_owned(),
        schema: json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}),
    }
}

/// A server with a tool that asks twice, one that asks the model, and one that writes a log. Counts how often the first starts.
async fn curious() -> (McpServer, Arc<AtomicUsize>) {
    let schema = || json!({"type": "object", "properties": {}});
    let started = Arc::new(AtomicUsize::new(0));
    let counter = started.clone();
    let asks = NativeTool::new("asks", "Asks twice.", schema(), move |_, context: ToolContext| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            let client = McpClient::of(&context).unwrap();
            let first = client.ask([("first", form("First?"))]).await?;
            let second = client.ask([("second", form("Second?"))]).await?;
            let value = |answer: &Value| answer["content"]["value"].clone();
            Ok(ToolResult::value(json!([
                value(&first["first"]),
                value(&second["second"])
            ])))
        }
    });
    let samples = NativeTool::new(
        "samples",
        "Asks the model.",
        schema(),
        |_, context: ToolContext| async move {
            let prompt = "Say hello".to_owned();
            let sample = ClientRequest::Sample { prompt, tokens_max: 9 };
            let answers = McpClient::of(&context).unwrap().ask([("model", sample)]).await?;
            Ok(ToolResult::text(
                answers["model"]["content"]["text"].as_str().unwrap_or("no text"),
            ))
        },
    );
    let logs = NativeTool::new(
        "logs",
        "Writes a log.",
        schema(),
        |_, context: ToolContext| async move {
            let client = McpClient::of(&context).unwrap();
            client.log(LogLevel::Debug, "test", json!("details"));
            client.log(LogLevel::Warning, "test", json!({"left": 3}));
            Ok(ToolResult::text("logged"))
        },
    );
    let tools = [asks, samples, logs].map(Result::unwrap);
    let host = tools.into_iter().fold(Toolwit::builder(), |host, tool| host.tool(tool));
    (McpServer::new(host.build().await.unwrap()), started)
}

fn accepted(value: &str) -> Value {
    json!({"action": "accept", "content": {"value": value}})
}

#[tokio::test]
async fn session_answers_questions_during_the_call() {
    let (server, started) = curious().await;
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    let mut client = LineClient::session_with(server, capabilities).await;
    let call = |tool: &str| json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": tool}});
    client.send(&call("asks")).await;
    for value in ["a", "b"] {
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        client
            .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted(value)}))
            .await;
    }
    assert_eq!(client.next().await["result"]["content"][0]["text"], r#"["a","b"]"#);
    assert_eq!(started.load(Ordering::SeqCst), 1);
    client.send(&call("samples")).await;
    let question = client.next().await;
    assert_eq!(question["method"], "sampling/createMessage", "{question}");
    let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
        .await;
    assert_eq!(client.next().await["result"]["content"][0]["text"], "hello");
}

async fn stateless_call(client: &mut LineClient, tool: &str, capabilities: Value, more: Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {}, "_meta": meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.request("call", "tools/call", params).await
}

#[tokio::test]
async fn request_without_a_session_is_repeated_until_all_questions_are_answered() {
    let (server, started) = curious().await;
    let mut client = LineClient::connected_to(server);
    let forms = || json!({"elicitation": {}});
    let first = stateless_call(&mut client, "asks", forms(), json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert!(first["result"]["inputRequests"]["first"].is_object());
    let answer =
        |state: &Value, key: &str, answer: Value| json!({"requestState": state, "inputResponses": {key: answer}});
    let state = &first["result"]["requestState"];
    let second = answer(state, "first", accepted("a"));
    let second = stateless_call(&mut client, "asks", forms(), second).await;
    let asked: Vec<_> = second["result"]["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(asked, ["second"], "the first answer is in the state");
    let again = answer(state, "first", accepted("x"));
    let again = stateless_call(&mut client, "asks", forms(), again).await;
    assert_eq!(again["error"]["code"], -32602, "a state counts once: {again}");
    let state = &second["result"]["requestState"];
    let tampered = json!(format!("{}A", state.as_str().unwrap()));
    let tampered = stateless_call(&mut client, "asks", forms(), answer(&tampered, "second", accepted("b"))).await;
    assert_eq!(tampered["error"]["code"], -32602, "{tampered}");
    let malformed = stateless_call(&mut client, "asks", forms(), json!({"inputResponses": {"first": 7}})).await;
    assert_eq!(malformed["result"]["resultType"], "input_required", "it is asked again");
    let done = stateless_call(&mut client, "asks", forms(), answer(state, "second", accepted("b"))).await;
    assert_eq!(done["result"]["content"][0]["text"], r#"["a","b"]"#, "{done}");
    assert_eq!(started.load(Ordering::SeqCst), 4, "refused states run nothing");
}

#[tokio::test]
async fn client_without_the_capability_is_not_asked() {
    let (server, _) = curious().await;
    let mut session = LineClient::session_with(server.clone(), json!({"elicitation": {}})).await;
    let refused = session.call("samples").await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains("does not offer `sampling`"), "{refused}");
    let mut client = LineClient::connected_to(server);
    let refused = stateless_call(&mut client, "samples", json!({"elicitation": {}}), json!({})).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert!(refused["error"]["data"]["requiredCapabilities"]["sampling"].is_object());
}

#[tokio::test]
async fn log_has_the_messages_of_the_severity_that_the_client_wants() {
    let (server, _) = curious().await;
    let mut session = LineClient::session_with(server.clone(), json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "logs"}});
    session.send(&call).await;
    let warning = session.next().await;
    assert_eq!(
        warning["params"],
        json!({"level": "warning", "logger": "test", "data": {"left": 3}}),
        "the default is info"
    );
    assert_eq!(session.next().await["result"]["content"][0]["text"], "logged");
    session
        .request("2", "logging/setLevel", json!({"level": "debug"}))
        .await;
    session.send(&call).await;
    assert_eq!(session.next().await["params"]["data"], "details");
    let wrong = session.request("3", "logging/setLevel", json!({"level": "loud"})).await;
    assert!(wrong["error"]["code"].is_i64(), "{wrong}");
    let mut client = LineClient::connected_to(server);
    let mut call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "logs", "_meta": meta()}});
    client.send(&call).await;
    assert_eq!(
        client.next().await["result"]["content"][0]["text"],
        "logged",
        "no level, no log"
    );
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("error");
    client.send(&call).await;
    assert_eq!(client.next().await["result"]["content"][0]["text"], "logged");
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    client.send(&call).await;
    assert_eq!(client.next().await["params"]["level"], "warning");
}

#[tokio::test]
async fn user_is_asked_for_a_missing_argument_of_a_prompt() {
    let text = "[[prompt]]\nname = 'p'\nargument = [{ name = 'value', ask = 'Which?' }]\nmessage = [{ text = 'Use {{value}}.' }]";
    let content = ServedContent::from_toml(text, ".".as_ref()).unwrap();
    let server = curious().await.0.with_content(content);
    let mut client = LineClient::connected_to(server);
    let mut params = json!({"name": "p", "_meta": meta()});
    let refused = client.request("1", "prompts/get", params.clone()).await;
    assert_eq!(refused["error"]["code"], -32602, "the client has no forms: {refused}");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    let asked = client.request("2", "prompts/get", params.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({"argument_value": {"action": "decline"}});
    let declined = client.request("3", "prompts/get", params.clone()).await;
    assert_eq!(declined["error"]["code"], -32602, "{declined}");
    params.as_object_mut().unwrap().remove("requestState");
    params["inputResponses"] = json!({"argument_value": accepted("tea")});
    let prompt = client.request("4", "prompts/get", params).await;
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"], "Use tea.",
        "{prompt}"
    );
}
