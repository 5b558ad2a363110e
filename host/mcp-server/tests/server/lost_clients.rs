//! Questions to clients that are gone.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use toolwit::tool::ToolResult;
use toolwit::{NativeTool, ToolContext, Toolwit};
use toolwit_mcp_server::{ClientRequest, HttpOptions, McpClient, McpServer, Principal, TaskSupport};

use crate::http::{Served, request};
use crate::line_client::{LineClient, meta_with};

/// The answers that a tool received, or the reasons why there are none.
type Answers = mpsc::UnboundedReceiver<Result<Value, String>>;

/// A server with a tool that asks its client.
async fn curious() -> (McpServer, Answers) {
    let (sender, answers) = mpsc::unbounded_channel();
    let schema = json!({"type": "object", "properties": {}});
    let ask = NativeTool::new("ask", "Asks.", schema, move |_, context: ToolContext| {
        let sender = sender.clone();
        async move {
            let form = ClientRequest::Form {
                message: "Sure?".to_owned(),
                schema: json!({"type": "object", "properties": {"value": {"type": "string"}}}),
            };
            let asked = McpClient::of(&context).unwrap().ask([("sure", form)]).await;
            let answer = asked.map(|answers| answers["sure"].clone());
            sender.send(answer.map_err(|error| error.to_string())).unwrap();
            Ok(ToolResult::text("asked"))
        }
    });
    let host = Toolwit::builder().tool(ask.unwrap()).build().await.unwrap();
    let principal = Principal::new("local", host).with_task_support(|_| TaskSupport::Always);
    (McpServer::for_principal(principal), answers)
}

/// Sends a request, and reads until a text arrives. Returns the connection and all that was read.
async fn open(served: &Served, head: &str, body: &str, until: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let types = "content-type: application/json\naccept: application/json, text/event-stream";
    let head = format!("{head}\nhost: localhost\n{types}\ncontent-length: {}", body.len());
    let request = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains(until) {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    (stream, text)
}

/// Calls the tool in a session, and returns the connection and the question.
async fn ask(served: &Served, session: &str) -> (TcpStream, Value) {
    let head = format!("POST /mcp HTTP/1.1{session}");
    let body = request("tools/call", json!({"name": "ask"})).to_string();
    let (stream, text) = open(served, &head, &body, "\"elicitation/create\"").await;
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let question = data
        .filter_map(|data| serde_json::from_str(data.trim()).ok())
        .next_back();
    (stream, question.unwrap())
}

async fn session(served: &Served) -> String {
    let session = served.session_with("", json!({"elicitation": {}})).await;
    format!("\nmcp-session-id: {session}\nmcp-protocol-version: 2025-11-25")
}

async fn serve() -> (Served, Answers) {
    let (server, answers) = curious().await;
    let options = HttpOptions::new(([127, 0, 0, 1], 0).into());
    (Served::of(server, options).await, answers)
}

// attack: G12
#[tokio::test]
async fn a_question_ends_when_its_client_has_no_connection() {
    let (served, mut answers) = serve().await;
    let session = session(&served).await;
    let (stream, _) = ask(&served, &session).await;
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    drop(stream);
    let reason = answers.recv().await.unwrap().unwrap_err();
    assert!(reason.contains("the client is gone"), "{reason}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_client_with_another_connection_can_answer() {
    let (served, mut answers) = serve().await;
    let session = session(&served).await;
    let (listener, _) = open(&served, &format!("GET /mcp HTTP/1.1{session}"), "", "200 OK").await;
    let (stream, question) = ask(&served, &session).await;
    drop(stream);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    let result = json!({"action": "accept", "content": {"value": "yes"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(served.post(&session, &answer).await.status, 202);
    assert_eq!(answers.recv().await.unwrap().unwrap()["content"]["value"], "yes");
    drop(listener);
}

// attack: G12
#[tokio::test(start_paused = true)]
async fn a_question_has_a_limited_time() {
    let (server, mut answers) = curious().await;
    let reason = async |answers: &mut Answers| {
        let answer = tokio::time::timeout(Duration::from_secs(11 * 60), answers.recv()).await;
        answer.expect("the question ends").unwrap().unwrap_err()
    };
    let mut client = LineClient::session_with(server.clone(), json!({"elicitation": {}})).await;
    client.send(&request("tools/call", json!({"name": "ask"}))).await;
    assert_eq!(client.next().await["method"], "elicitation/create");
    let in_session = reason(&mut answers).await;

    let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let params = json!({"name": "ask", "arguments": {}, "_meta": meta_with(&capabilities)});
    let mut client = LineClient::connected_to(server);
    let task = client.request("1", "tools/call", params).await;
    let in_task = reason(&mut answers).await;
    for reason in [&in_session, &in_task] {
        assert!(reason.contains("not answer in time"), "{reason}: {task}");
    }
}
