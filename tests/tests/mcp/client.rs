//! One client for all transports.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolwit_mcp_server::{HttpListener, HttpOptions, McpServer};

/// How a client reaches a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    /// Lines of JSON, as over standard input and output, in a session.
    Lines,
    /// HTTP with a session.
    HttpSession,
    /// HTTP without a session.
    Stateless,
}

/// A client of a server in this process.
pub(crate) struct Client {
    connection: Connection,
    next_id: u64,
}

enum Connection {
    Lines {
        input: DuplexStream,
        output: Lines<BufReader<DuplexStream>>,
    },
    Http(Http),
}

struct Http {
    address: SocketAddr,
    session: Option<String>,
    /// The answer that was not taken yet.
    last: Option<Value>,
    is_stateless: bool,
    _server: DropGuard,
}

impl Client {
    /// Connects, and begins a session if the transport has one.
    pub(crate) async fn connect(server: &McpServer, transport: Transport) -> Self {
        let connection = match transport {
            Transport::Lines => lines(server.clone()),
            Transport::HttpSession => Connection::Http(http(server.clone(), false).await),
            Transport::Stateless => Connection::Http(http(server.clone(), true).await),
        };
        let mut client = Self { connection, next_id: 1 };
        if !matches!(transport, Transport::Stateless) {
            let info = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
            let answer = client.request("initialize", params).await;
            assert!(answer["result"].is_object(), "{answer}");
            client.notify("notifications/initialized", json!({})).await;
        }
        client
    }

    /// Sends a request, and returns its answer. Notifications before it are dropped.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Sends a request over lines, without waiting. Over HTTP, the answer is kept.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match &mut self.connection {
            Connection::Lines { input, .. } => write_line(input, &message).await,
            Connection::Http(http) => {
                let answer = http.post(message).await;
                http.last = Some(answer);
            }
        }
        id
    }

    /// Returns the answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        match &mut self.connection {
            Connection::Lines { output, .. } => loop {
                let line = output.next_line().await.unwrap().expect("the server answers");
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["id"] == id {
                    return message;
                }
            },
            Connection::Http(http) => http.last.take().expect("a request was sent"),
        }
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        match &mut self.connection {
            Connection::Lines { input, .. } => write_line(input, &message).await,
            Connection::Http(http) => drop(http.exchange(&message).await),
        }
    }

    /// Calls a tool, and returns its structured content.
    pub(crate) async fn value(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{tool}: {answer}");
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{tool}: {answer}"));
        serde_json::from_str(text).unwrap_or_else(|_| json!(text))
    }

    /// Calls a method of an entity that a result has: a tool of the entity, or of its type with its handle.
    pub(crate) async fn method(&mut self, entity: &Value, method: &str, mut arguments: Value) -> Value {
        let tools = entity["available_tools"]
            .as_array()
            .unwrap_or_else(|| panic!("no entity: {entity}"));
        let names = tools.iter().filter_map(Value::as_str);
        let tool = names
            .filter(|name| name.ends_with(method))
            .min_by_key(|name| name.len());
        let tool = tool.unwrap_or_else(|| panic!("{method}: {entity}")).to_owned();
        if let Some(handle) = entity["handle"].as_str() {
            arguments[entity["type"].as_str().unwrap()] = json!(handle);
        }
        self.value(&tool, arguments).await
    }
}

fn lines(server: McpServer) -> Connection {
    let (input, server_input) = tokio::io::duplex(64 << 10);
    let (server_output, output) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        server
            .serve_streams(server_input, server_output, CancellationToken::new())
            .await
    });
    let output = BufReader::new(output).lines();
    Connection::Lines { input, output }
}

async fn write_line(input: &mut DuplexStream, message: &Value) {
    let line = format!("{message}\n");
    input.write_all(line.as_bytes()).await.unwrap();
}

async fn http(server: McpServer, is_stateless: bool) -> Http {
    let listener = HttpListener::bind(HttpOptions::new(([127, 0, 0, 1], 0).into()))
        .await
        .unwrap();
    let (address, cancel) = (listener.address(), CancellationToken::new());
    let stop = cancel.clone();
    tokio::spawn(async move { listener.serve(&server, stop).await });
    Http {
        address,
        session: None,
        is_stateless,
        last: None,
        _server: cancel.drop_guard(),
    }
}

impl Http {
    /// Sends a request, and returns its answer.
    async fn post(&mut self, mut message: Value) -> Value {
        if self.is_stateless {
            message["params"]["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let (head, body) = self.exchange(&message).await;
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id:"));
        if let Some(session) = session {
            self.session = Some(session.trim().to_owned());
        }
        let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        let answer = messages.find(|event| event["id"] == message["id"]);
        answer.unwrap_or_else(|| serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n{body}")))
    }

    /// Sends a message on a connection of its own. Returns the head of the answer in lower case, and its body.
    async fn exchange(&self, message: &Value) -> (String, String) {
        let mut head = "POST /mcp HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n".to_owned();
        head.push_str("accept: application/json, text/event-stream\r\n");
        if let Some(session) = &self.session {
            head.push_str(&format!(
                "mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"
            ));
        }
        if self.is_stateless {
            let method = message["method"].as_str().unwrap();
            head.push_str(&format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"));
            if let Some(name) = message["params"]["name"].as_str() {
                head.push_str(&format!("mcp-name: {name}\r\n"));
            }
        }
        let body = message.to_string();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }
}
