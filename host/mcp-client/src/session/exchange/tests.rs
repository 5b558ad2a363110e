#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::ServerConfig;
use crate::requests::{ServerAnswer, ServerQuestion, ServerRequests};
use crate::session::handler::Handler;
use crate::session::input::InputProvider;
use crate::session::notices::Notices;
use crate::transport::Diagnostics;

/// The time that the server takes for each round.
const ROUND: Duration = Duration::from_secs(40);

/// A user who declines each question, or never answers.
struct Person {
    is_answering: bool,
    /// Is cancelled when the person is asked.
    asked_signal: CancellationToken,
}

#[async_trait]
impl ServerRequests for Person {
    fn answers_questions(&self) -> bool {
        true
    }

    async fn answer(&self, _: ServerQuestion) -> ServerAnswer {
        self.asked_signal.cancel();
        if self.is_answering {
            return ServerAnswer::Declined;
        }
        std::future::pending().await
    }
}

/// The answer to `server/discover`.
fn discovery_result() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "serverInfo": {"name": "test", "version": "1"}, "ttlMs": 60_000, "cacheScope": "public",
    })
}

/// Runs a server that reports progress once in each call, and never answers the call.
async fn serve_stalling_calls(stream: DuplexStream) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let reply = match message["method"].as_str() {
            Some("server/discover") => json!({"jsonrpc": "2.0", "id": message["id"], "result": discovery_result()}),
            Some("tools/call") => {
                tokio::time::sleep(ROUND).await;
                let token = &message["params"]["_meta"]["progressToken"];
                let progress = json!({"progressToken": token, "progress": 1});
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            }
            _ => continue,
        };
        write.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
    }
}

/// Runs a server that requests input again after each answer.
async fn serve_endless_questions(stream: DuplexStream) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let question =
            json!({"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": schema}});
        let result = match message["method"].as_str() {
            Some("server/discover") => discovery_result(),
            Some("tools/call") => {
                tokio::time::sleep(ROUND).await;
                json!({"resultType": "input_required", "inputRequests": {"name": question}, "requestState": "s"})
            }
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

async fn connection<F>(person: Person, server: impl FnOnce(DuplexStream) -> F) -> Connection
where
    F: Future<Output = ()> + Send + 'static,
{
    let (client, stream) = tokio::io::duplex(64 << 10);
    tokio::spawn(server(stream));
    let config = ServerConfig::process("test", "x").unwrap();
    let redaction = Redaction::default();
    let handler = Handler {
        input: InputProvider::new(&config, Arc::new(person), redaction.clone()),
        notices: Notices::default(),
        redaction: redaction.clone(),
    };
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let service = handler.serve_with_lifecycle(tokio::io::split(client), lifecycle).await;
    Connection::new("test".to_owned(), service.unwrap(), Diagnostics::default(), redaction)
}

/// Calls a tool with a time limit of 100 s, and returns the reason why there is no result.
async fn call(person: Person, context: &ToolContext) -> RequestError {
    let connection = connection(person, serve_endless_questions).await;
    let exchange = Exchange {
        context,
        meta: Map::new(),
        idle_max: Duration::from_secs(60),
        wall_max: Duration::from_secs(100),
    };
    connection.call_tool("t", Map::new(), &exchange).await.unwrap_err()
}

// attack: G9
#[tokio::test(start_paused = true)]
async fn all_rounds_of_input_have_the_time_of_one_call() {
    let started = Instant::now();
    let person = Person {
        is_answering: true,
        asked_signal: CancellationToken::new(),
    };
    let error = call(person, &ToolContext::new()).await;
    assert!(
        matches!(error, RequestError::Timeout(max) if max == Duration::from_secs(100)),
        "{error}"
    );
    // A cancellation takes a second at most.
    assert!(
        (100..=101).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
}

// attack: G9
#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_ends_with_the_call() {
    let started = Instant::now();
    let person = Person {
        is_answering: false,
        asked_signal: CancellationToken::new(),
    };
    let error = call(person, &ToolContext::new()).await;
    assert!(matches!(error, RequestError::NoInput(_)), "{error}");
    assert_eq!(started.elapsed().as_secs(), 100);

    // The call is cancelled when the person is asked.
    let started = Instant::now();
    let asked_signal = CancellationToken::new();
    let person = Person {
        is_answering: false,
        asked_signal: asked_signal.clone(),
    };
    let error = call(person, &ToolContext::new().with_cancel(asked_signal)).await;
    assert!(matches!(error, RequestError::Cancelled), "{error}");
    assert_eq!(started.elapsed(), ROUND);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_reporting_progress_has_an_error_of_its_own() {
    let started = Instant::now();
    let person = Person {
        is_answering: false,
        asked_signal: CancellationToken::new(),
    };
    let connection = connection(person, serve_stalling_calls).await;
    let exchange = Exchange {
        context: &ToolContext::new(),
        meta: Map::new(),
        idle_max: Duration::from_secs(60),
        wall_max: Duration::from_secs(600),
    };
    let error = connection.call_tool("t", Map::new(), &exchange).await.unwrap_err();
    assert!(matches!(error, RequestError::Stalled(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the server neither answered nor reported progress for 60 s"
    );
    // The report after 40 s started the 60 s again. A cancellation takes a second at most.
    assert!(
        (100..=101).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
}
