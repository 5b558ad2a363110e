//! The client against real servers: processes, and HTTP servers on this machine.

#![allow(clippy::unwrap_used, clippy::panic)]

mod handles;
mod hostile_process;
mod http;
mod http_answers;
mod http_server;
mod log;
mod login;
mod login_hostile;
mod login_server;
mod oauth;
mod oauth_redaction;
mod process;
mod process_settings;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwit_agent::ToolSource;
use toolwit_core::{Arguments, OutputSink, Tool, ToolContext, ToolError, ToolResult};
use toolwit_mcp_client::{ClientOptions, McpServer, ServerConfig};

/// The program of the test server.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-test-server");

/// Configures the test server with a behaviour.
fn config(behaviour: &str) -> ServerConfig {
    ServerConfig::process("test", PROGRAM)
        .unwrap()
        .with_arguments([behaviour])
}

/// Returns the test server with a behaviour.
fn server(behaviour: &str) -> McpServer {
    McpServer::new(config(behaviour), ClientOptions::default())
}

async fn tool(server: &McpServer, name: &str, context: &ToolContext) -> Arc<dyn Tool> {
    let tools = server.tools(context).await.unwrap();
    let tool = tools.into_iter().find(|tool| tool.definition().name() == name);
    tool.unwrap_or_else(|| panic!("there is no tool `{name}`"))
}

fn arguments(value: &Value) -> Arguments {
    value.as_object().cloned().unwrap_or_default()
}

/// Calls a tool by its name.
async fn call(server: &McpServer, name: &str, value: Value) -> Result<ToolResult, ToolError> {
    call_with(server, name, value, &ToolContext::new()).await
}

async fn call_with(
    server: &McpServer,
    name: &str,
    value: Value,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    tool(server, name, context).await.call(arguments(&value), context).await
}

async fn names(server: &McpServer) -> Vec<String> {
    let tools = server.tools(&ToolContext::new()).await.unwrap();
    tools.iter().map(|tool| tool.definition().name().to_owned()).collect()
}

/// Collects the progress of calls.
#[derive(Default)]
struct Progress(Mutex<Vec<String>>);

impl OutputSink for Progress {
    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn communicate(&self, _text: &str) {}
}

/// Asserts that the server still works, or works again.
async fn works(server: &McpServer) {
    let result = call(server, "echo", json!({"text": "hello"})).await.unwrap();
    assert_eq!(result.for_llm, "hello");
}
