//! A server of the Model Context Protocol on standard input and output, for tests. Its first argument is its behaviour.
//!
//! It does not use the library that the client uses, so that both sides do not share a mistake.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod hostile;
mod shop;
mod tasks;
mod tools;

use std::io::Write;

use serde_json::{Value, json};

/// A connection to a client, and what the server remembers.
pub(crate) struct Server {
    behaviour: String,
    /// The number of lists of tools that were sent.
    lists: u32,
    calls: u32,
    has_grown: bool,
    /// Whether an earlier process of the server created the file of its second argument.
    is_second: bool,
}

fn main() {
    let behaviour = std::env::args().nth(1).unwrap_or_default();
    let mut server = Server {
        behaviour,
        lists: 0,
        calls: 0,
        has_grown: false,
        is_second: std::env::args()
            .nth(2)
            .is_some_and(|file| std::fs::File::create_new(file).is_err()),
    };
    hostile::at_start(&server.behaviour);
    while let Some(message) = next_message() {
        server.receive(&message);
    }
}

/// Returns the next message of the client, or `None` at the end of the input.
pub(crate) fn next_message() -> Option<Value> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).ok()?;
    (read > 0).then(|| serde_json::from_str(&line).unwrap_or_default())
}

impl Server {
    pub(crate) fn is(&self, behaviour: &str) -> bool {
        self.behaviour == behaviour
    }

    fn receive(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        if hostile::receive(self, method, id) {
            return;
        }
        let parameters = &message["params"];
        if tasks::receive(self, method, id, parameters) {
            return;
        }
        match method {
            "initialize" => self.initialize(id, parameters),
            "server/discover" if self.is("stateless") || self.is("empty-cursor-stateless") => answer(id, &discovered()),
            "tools/list" => {
                self.lists += 1;
                let list = hostile::list(self, parameters).or_else(|| shop::list(self));
                let list = list.unwrap_or_else(|| json!({"tools": tools::all(self)}));
                answer(id, &list);
            }
            "tools/call" => tools::call(self, id, parameters),
            "resources/list" if parameters["cursor"] == "page 2" => {
                answer(
                    id,
                    &json!({"resources": [{"uri": "test://farewell", "name": "farewell"}]}),
                );
            }
            "resources/list" => {
                let resource = json!({"uri": "test://greeting", "name": "greeting", "mimeType": "text/plain"});
                answer(id, &json!({"resources": [resource], "nextCursor": "page 2"}));
            }
            "resources/read" if parameters["uri"] == "test://greeting" => {
                answer(id, &json!({"contents": [{"uri": "test://greeting", "text": "hello"}]}));
            }
            "prompts/list" => {
                let argument = json!({"name": "name", "required": true});
                answer(
                    id,
                    &json!({"prompts": [{"name": "greet", "description": "Greets.", "arguments": [argument]}]}),
                );
            }
            "prompts/get" => {
                let text = format!(
                    "Greet {}.",
                    parameters["arguments"]["name"].as_str().unwrap_or_default()
                );
                answer(
                    id,
                    &json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
                );
            }
            "ping" => answer(id, &json!({})),
            _ => refuse(id, -32601, "method not found"),
        }
    }

    fn initialize(&self, id: &Value, parameters: &Value) {
        let revision = match self.behaviour.as_str() {
            "old-revision" => json!("2025-06-18"),
            "ancient-revision" => json!("1999-01-01"),
            _ => parameters["protocolVersion"].clone(),
        };
        answer(
            id,
            &json!({
                "protocolVersion": revision,
                "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }),
        );
    }
}

/// The answer to `server/discover`.
fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "test", "version": "1"},
        "ttlMs": 60_000,
        "cacheScope": "public",
    })
}

/// Sends the result of a request.
pub(crate) fn answer(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

/// Sends the error of a request.
pub(crate) fn refuse(id: &Value, code: i32, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

/// Sends a message. Ends with the client.
pub(crate) fn send(message: &Value) {
    send_text(&message.to_string());
}

/// Sends a line.
pub(crate) fn send_text(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_err() {
        std::process::abort();
    }
}
