//! Calls a tool of a session.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::json;
use tracing::{Instrument, Span, info_span};

use super::output::CallOutput;
use super::record::CallRecord;
use crate::approval::UserDecision;
use crate::client::{ClientRespondent, InputRound, McpClient};
use crate::principal::Principal;
use crate::wire::{Notes, TraceMeta, call_context};
use toolwit::agent::{SessionAnswer, ToolSession};
use toolwit::tool::{DeferredWork, LogLevel};
use toolwit::{Arguments, Error, ErrorKind};

/// The longest part of a tool's name in a span, in bytes.
const SPAN_NAME_BYTES: usize = 80;

/// The outcome of a call.
pub(crate) struct CallOutcome {
    /// The answer, or the reason why the call did not run.
    pub(crate) answer: Result<SessionAnswer, Error>,
    /// The messages that the tool sent to the user.
    pub(crate) notes: Notes,
}

/// The request of a call and its principal, and how the client is asked and notified during the call.
pub(crate) struct CallRequest<'r> {
    pub(crate) principal: &'r Principal,
    pub(crate) request: &'r RequestContext<RoleServer>,
    /// The round of a request without a session: a question to the client ends the call. `None` for a request with a
    /// session: questions are sent during the call.
    pub(crate) round: Option<Arc<InputRound>>,
    /// The lowest severity of the messages for the client's log; `None` for no messages.
    pub(crate) log_min: Option<LogLevel>,
}

/// Opens the span of a client's call. Its name and attributes follow OpenTelemetry's semantic conventions for MCP.
fn request_span(tool: &str, principal: &Principal) -> Span {
    // The client chose this name, which may be long.
    let tool = &tool[..tool.floor_char_boundary(SPAN_NAME_BYTES)];
    info_span!(
        target: "toolwit::telemetry",
        "tools_call",
        otel.name = format!("tools/call {tool}"),
        otel.kind = "server",
        mcp.method.name = "tools/call",
        gen_ai.tool.name = tool,
        toolwit.principal = principal.name(),
    )
}

/// Records the tool of a call, and whether the call was allowed.
fn record_answer(record: &CallRecord, answer: &Result<SessionAnswer, Error>, user_decision: &UserDecision) {
    let mut recorded = record.lock();
    match answer {
        Ok(answer) => {
            recorded.tool.clone_from(&answer.tool);
            recorded.error = answer.error_kind;
        }
        Err(error) => recorded.error = Some(error.kind),
    }
    let policy_decision = match recorded.error {
        Some(ErrorKind::Denied) => "denied",
        _ => "allowed",
    };
    recorded.decision = Some(user_decision.get().unwrap_or(policy_decision));
}

/// Returns the work that the request defers until it is answered.
fn deferred_work(request: &RequestContext<RoleServer>) -> Option<&DeferredWork> {
    let parts = request.extensions.get::<http::request::Parts>();
    let of_http = parts.and_then(|parts| parts.extensions.get());
    of_http.or_else(|| request.extensions.get())
}

/// Calls a tool of a session for a request. If the request is cancelled, the guest is stopped. The progress of the tool is
/// sent as notifications. After the call, the standard output, the standard error and the log of the guest are sent as
/// one debug message to the client's log.
pub(crate) async fn call(
    tools: &ToolSession,
    name: &str,
    arguments: Arguments,
    call_request: CallRequest<'_>,
) -> CallOutcome {
    let CallRequest {
        principal,
        request,
        round,
        log_min,
    } = call_request;
    let (record, user_decision) = (CallRecord::of(request), UserDecision::default());
    let (client, mut outbox) = McpClient::of_request(request, round, log_min);
    let running_output = CallOutput::start(request, client.clone());
    let context = call_context(principal.context(), &TraceMeta(&request.meta))
        .with_cancel_token(request.ct.clone())
        .with_output(running_output.output())
        .with_respondent(Arc::new(ClientRespondent))
        .with_extension(client.clone())
        .with_extension(user_decision.clone());
    let context = match deferred_work(request) {
        Some(deferred_work) => context.with_extension(deferred_work.clone()),
        None => context,
    };
    if CallRecord::is_logged() {
        let effect = tools.effect(name, &arguments, &context).await;
        record.lock().effect = effect;
    }
    let span = request_span(name, principal);
    let answer = tokio::select! {
        answer = tools.call(name, arguments, &context).instrument(span) => answer,
        never = outbox.send() => match never {},
    };
    if let Ok(SessionAnswer { result, .. }) = &answer
        && let Some(log) = &result.log
    {
        client.log(LogLevel::Debug, name, json!(&**log));
    }
    record_answer(&record, &answer, &user_decision);
    outbox.finish().await;
    CallOutcome {
        answer,
        notes: running_output.finish().await,
    }
}
