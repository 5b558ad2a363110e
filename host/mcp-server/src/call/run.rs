//! Calls a tool of a session.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::json;

use super::output::CallOutput;
use crate::client::{ClientRespondent, InputRound, McpClient};
use crate::principal::Principal;
use crate::wire::{Notes, TraceMeta, call_context};
use toolwit::agent::{SessionAnswer, ToolSession};
use toolwit::tool::{DeferredWork, LogLevel};
use toolwit::{Arguments, Error};

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
    let (client, mut outbox) = McpClient::of_request(request, round, log_min);
    let running_output = CallOutput::start(request, client.clone());
    let context = call_context(principal.context(), &TraceMeta(&request.meta))
        .with_cancel_token(request.ct.clone())
        .with_output(running_output.output())
        .with_respondent(Arc::new(ClientRespondent))
        .with_extension(client.clone());
    let context = match request.extensions.get::<DeferredWork>() {
        Some(deferred_work) => context.with_extension(deferred_work.clone()),
        None => context,
    };
    let answer = tokio::select! {
        answer = tools.call(name, arguments, &context) => answer,
        never = outbox.send() => match never {},
    };
    if let Ok(SessionAnswer { result, .. }) = &answer
        && let Some(log) = &result.log
    {
        client.log(LogLevel::Debug, name, json!(&**log));
    }
    outbox.finish().await;
    CallOutcome {
        answer,
        notes: running_output.finish().await,
    }
}
