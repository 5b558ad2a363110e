//! Tests of the time limits and the cancellation of calls.

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
use crate::session::notifications::Notifications;
use crate::transport::Diagnostics;

/// The time that the server takes to answer each call.
const ROUND_TIME: Duration = Duration::from_secs(40);

/// A user who declines each question, or never answers.
struct User {
    is_answering: bool,
    /// Cancelled when the user is asked a question.
    asked_signal: CancellationToken,
}

#[async_trait]
impl ServerRequests for User {
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
                tokio::time::sleep(ROUND_TIME).await;
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
                tokio::time::sleep(ROUND_TIME).await;
                json!({"resultType": "input_required", "inputRequests": {"name": question}, "requestState": "s"})
            }
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

/// Connects to a server that runs as a task.
async fn connect<F>(user: User, server: impl FnOnce(DuplexStream) -> F) -> Connection
where
    F: Future<Output = ()> + Send + 'static,
{
    let (client, stream) = tokio::io::duplex(64 << 10);
    tokio::spawn(server(stream));
    let config = ServerConfig::process("test", "x").unwrap();
    let redaction = Redaction::default();
    let handler = Handler {
        input: InputProvider::new(&config, Arc::new(user), redaction.clone()),
        notifications: Notifications::default(),
        redaction: redaction.clone(),
    };
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let service = handler.serve_with_lifecycle(tokio::io::split(client), lifecycle).await;
    Connection::new("test".to_owned(), service.unwrap(), Diagnostics::default(), redaction)
}

/// Calls a tool of the server with endless questions. The call has a time limit of 100 s. Returns the error of the call.
async fn call_error(user: User, context: &ToolContext) -> RequestError {
    let connection = connect(user, serve_endless_questions).await;
    let options = RequestOptions {
        context,
        meta: Map::new(),
        idle_max: Duration::from_secs(60),
        wall_max: Duration::from_secs(100),
    };
    connection.call_tool("t", Map::new(), &options).await.unwrap_err()
}

// attack: G9
#[tokio::test(start_paused = true)]
async fn all_rounds_of_input_share_the_time_limit_of_one_call() {
    let started = Instant::now();
    let user = User {
        is_answering: true,
        asked_signal: CancellationToken::new(),
    };
    let error = call_error(user, &ToolContext::new()).await;
    assert!(
        matches!(error, RequestError::Timeout(max) if max == Duration::from_secs(100)),
        "{error}"
    );
    // After the limit of 100 s, sending the cancellation takes at most one second.
    assert!(
        (100..=101).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
}

// attack: G9
#[tokio::test(start_paused = true)]
async fn waiting_for_an_answer_of_the_user_ends_with_the_call() {
    let started = Instant::now();
    let user = User {
        is_answering: false,
        asked_signal: CancellationToken::new(),
    };
    let error = call_error(user, &ToolContext::new()).await;
    assert!(matches!(error, RequestError::NoInput(_)), "{error}");
    assert_eq!(started.elapsed().as_secs(), 100);

    // The context of the call is cancelled when the user is asked.
    let started = Instant::now();
    let asked_signal = CancellationToken::new();
    let user = User {
        is_answering: false,
        asked_signal: asked_signal.clone(),
    };
    let error = call_error(user, &ToolContext::new().with_cancel_token(asked_signal)).await;
    assert!(matches!(error, RequestError::Cancelled), "{error}");
    assert_eq!(started.elapsed(), ROUND_TIME);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_reporting_progress_causes_the_error_stalled() {
    let started = Instant::now();
    let user = User {
        is_answering: false,
        asked_signal: CancellationToken::new(),
    };
    let connection = connect(user, serve_stalling_calls).await;
    let options = RequestOptions {
        context: &ToolContext::new(),
        meta: Map::new(),
        idle_max: Duration::from_secs(60),
        wall_max: Duration::from_secs(600),
    };
    let error = connection.call_tool("t", Map::new(), &options).await.unwrap_err();
    assert!(matches!(error, RequestError::Stalled(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the server neither answered nor reported progress for 60 s"
    );
    // The progress notification after 40 s restarted the idle limit of 60 s. Sending the cancellation takes at most one
    // second.
    assert!(
        (100..=101).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
}
