//! Calls over standard input and output, compared with a bare server of the same protocol crate: the time of a call, and the time from
//! the start of the process to the first result.
//!
//! ```sh
//! toolwit build tests/guests/rust/showcase --out plugins
//! cargo bench --workspace --bench round_trip -- plugins
//! ```

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program for developers"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InitializeResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwit::{Exposure, Toolwit};
use toolwit_mcp_server::McpServer;

/// The tool that all servers have, a function of the guest `showcase`.
const TOOL: &str = "test_simple_text";
const TEXT: &str = "This is a simple text response for testing.";

const BLOCKS: usize = 20;
const CALLS: usize = 200;
const STARTS: usize = 20;

/// The time between calls that do not follow each other at once.
const PAUSE: Duration = Duration::from_millis(5);

struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new(TOOL, "Returns a text.", Arc::new(JsonObject::new()));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(TEXT)]).into())
    }
}

async fn serve(plugins: Option<&str>) {
    match plugins {
        None => {
            let streams = (tokio::io::stdin(), tokio::io::stdout());
            drop(Bare.serve(streams).await.expect("a client").waiting().await);
        }
        Some(plugins) => {
            let host = Toolwit::builder().plugins(plugins).exposure(Exposure::Flat).build();
            let server = McpServer::new(host.await.expect("the plugins are valid"));
            server.serve_stdio(CancellationToken::new()).await.expect("a client");
        }
    }
}

/// A server process with a session.
struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let executable = std::env::current_exe().unwrap();
        let mut process = Command::new(executable)
            .arg("--serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let output = BufReader::new(output);
        let mut server = Self {
            process,
            input,
            output,
            id: 0,
        };
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        server.request("initialize", &params);
        writeln!(
            server.input,
            "{}",
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
        )
        .unwrap();
        server
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        writeln!(
            self.input,
            "{}",
            json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        )
        .unwrap();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.id {
                return message;
            }
        }
    }

    fn call(&mut self) {
        let answer = self.request("tools/call", &json!({"name": TOOL, "arguments": {}}));
        assert_eq!(answer["result"]["content"][0]["text"], TEXT, "{answer}");
    }

    /// Returns the mean time of the calls of a block.
    fn block(&mut self) -> Duration {
        let start = Instant::now();
        (0..CALLS).for_each(|_| self.call());
        start.elapsed() / u32::try_from(CALLS).unwrap()
    }
}

impl Server {
    /// Returns the median time of calls that come one by one, as those of a model do.
    fn after_a_pause(&mut self) -> Duration {
        let times = (0..CALLS).map(|_| {
            std::thread::park_timeout(PAUSE);
            let start = Instant::now();
            self.call();
            start.elapsed()
        });
        median(times.collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the median time from the start of a process to its first result.
fn first_result(arguments: &[&str]) -> Duration {
    let run = || {
        let start = Instant::now();
        Server::start(arguments).call();
        start.elapsed()
    };
    run();
    median((0..STARTS).map(|_| run()).collect())
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .peekable();
    if arguments.next_if(|argument| argument == "--serve").is_some() {
        let plugins = arguments.next();
        tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(serve(plugins.as_deref()));
        return;
    }
    let Some(plugins) = arguments.next() else {
        println!("skipped: pass a directory with the guest `showcase`");
        return;
    };
    let (mut bare_server, mut toolwit_server) = (Server::start(&[]), Server::start(&[&plugins]));
    toolwit_server.call();
    let times: Vec<_> = (0..BLOCKS)
        .map(|_| (bare_server.block(), toolwit_server.block()))
        .collect();
    let (bare, toolwit): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    let (bare, toolwit) = (median(bare), median(toolwit));
    let ratio = toolwit.as_secs_f64() / bare.as_secs_f64();
    println!("call: bare {bare:?}, plugin {toolwit:?}, ratio {ratio:.2}");
    let (bare, toolwit) = (bare_server.after_a_pause(), toolwit_server.after_a_pause());
    println!("call after a pause: bare {bare:?}, plugin {toolwit:?}");
    let (bare, toolwit) = (first_result(&[]), first_result(&[&plugins]));
    println!("start to first result: bare {bare:?}, plugin {toolwit:?}");
}
