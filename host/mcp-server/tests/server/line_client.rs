//! A client that writes and reads lines.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server;
use toolwit::Error;
use toolwit_mcp_server::McpServer;

/// A connection to a server in this process.
pub(crate) struct LineClient {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<Result<(), Error>>,
}

/// The `_meta` of a request of 2026-07-28.
pub(crate) fn meta() -> Value {
    meta_with(&json!({}))
}

/// The `_meta` of a request of a revision.
pub(crate) fn meta_of(version: &str) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
    meta
}

/// The `_meta` of a request of 2026-07-28, by a client with these capabilities.
pub(crate) fn meta_with(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

impl LineClient {
    /// Connects, and begins nothing.
    pub(crate) async fn connect() -> Self {
        Self::connected_to(server().await)
    }

    /// Connects to a server, and begins nothing.
    pub(crate) fn connected_to(server: McpServer) -> Self {
        Self::connected_with(server, 64 << 10)
    }

    /// Connects to a server whose messages wait in a buffer of this size until the client reads them.
    pub(crate) fn connected_with(server: McpServer, output_bytes: usize) -> Self {
        Self::connect_to(server, output_bytes, CancellationToken::new())
    }

    /// Connects to a server that a token stops.
    pub(crate) fn stopped_by(server: McpServer, stop: CancellationToken) -> Self {
        Self::connect_to(server, 64 << 10, stop)
    }

    fn connect_to(server: McpServer, output_bytes: usize, stop: CancellationToken) -> Self {
        let (input, server_input) = tokio::io::duplex(64 << 10);
        let (server_output, output) = tokio::io::duplex(output_bytes);
        let serve = async move { server.serve_streams(server_input, server_output, stop).await };
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            server: tokio::spawn(serve),
        }
    }

    /// Connects and initializes a session.
    pub(crate) async fn session() -> Self {
        Self::session_with(server().await, json!({})).await
    }

    /// Connects to a server and initializes a session of a client with these capabilities.
    pub(crate) async fn session_with(server: McpServer, capabilities: Value) -> Self {
        let mut client = Self::connected_to(server);
        client.begin_session(capabilities).await;
        client
    }

    /// Initializes a session.
    pub(crate) async fn begin_session(&mut self, capabilities: Value) {
        let answer = self.initialize_with("2025-11-25", capabilities).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, json!({})).await
    }

    async fn initialize_with(&mut self, version: &str, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        self.request("init", "initialize", params).await
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    /// Returns the next message of the server.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request, and returns its answer. Notifications before it are dropped.
    pub(crate) async fn request(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn call(&mut self, tool: &str) -> Value {
        self.request("call", "tools/call", json!({"name": tool, "arguments": {}}))
            .await
    }

    /// Sends a call of a tool with the id `call`, and does not wait for its answer.
    pub(crate) async fn send_call(&mut self, tool: &str) {
        let params = json!({"name": tool, "arguments": {}});
        self.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params}))
            .await;
    }

    pub(crate) async fn tool_names(&mut self) -> Vec<String> {
        let answer = self.request("list", "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Ends the input, and waits for the end of the server. Returns what it still sent.
    pub(crate) async fn finish(mut self) -> Vec<Value> {
        drop(self.input.take());
        let mut messages = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            messages.push(serde_json::from_str(&line).unwrap());
        }
        self.server.await.unwrap().unwrap();
        messages
    }
}
