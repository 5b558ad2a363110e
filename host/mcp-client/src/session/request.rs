//! Requests to a server, with their time limits, cancellation and progress.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, InputRequiredResult, InputResponses,
    ProgressNotificationParam, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::connection::Connection;
use crate::failure::{LoginRequired, quoted};
use crate::transport::{AUTHORIZATION_REQUIRED, NOT_PROCESSED, SESSION_LOST, TRANSPORT_FAILED};
use crate::value::Redaction;
use toolwit_core::ToolContext;
use toolwit_core::limits::{MCP_INPUT_ROUNDS_MAX, OUTPUT_BYTES_MAX, Span};

/// The minimum time between two progress messages to the user.
const PROGRESS_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The maximum time for sending a cancellation.
const CANCEL_WALL_MAX: Duration = Duration::from_secs(1);

/// The pause before a call is repeated, if the server answered with a state only: no result, and no requests for input.
const ROUND_PAUSE: Duration = Duration::from_millis(100);

/// The context of a request, its `_meta`, and its time limits.
pub(crate) struct RequestOptions<'a> {
    pub(crate) context: &'a ToolContext,
    /// Entries of `_meta`, in addition to those of the protocol.
    pub(crate) meta: Map<String, Value>,
    /// The maximum time in which the request neither ends nor reports progress.
    pub(crate) idle_max: Duration,
    /// The maximum time in total, even if the request reports progress.
    pub(crate) wall_max: Duration,
}

impl RequestOptions<'_> {
    /// Returns the maximum time in total: `wall_max`, or `idle_max` if that is longer.
    pub(super) fn total_max(&self) -> Duration {
        self.wall_max.max(self.idle_max)
    }

    /// Returns the deadline of a request that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.total_max()
    }
}

/// The reason why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server answered with an error, or the client refused the server's request for input.
    #[error("{}", quoted(&.0.message))]
    Refused(ErrorData),
    /// The server has ended the session, and did not process the request.
    #[error("the server has ended the session")]
    SessionLost,
    /// The server requires a login, and did not process the request.
    #[error("{1}")]
    LoginRequired(LoginRequired, String),
    /// The transport failed, and the server did not process the request.
    #[error("{0}")]
    NotProcessed(String),
    /// The transport failed after the request may have reached the server, or the server cancelled the request.
    #[error("{0}")]
    Failed(String),
    /// The connection ended before the answer.
    #[error("the connection ended before the answer: {0}")]
    Closed(String),
    /// The answer took too long.
    #[error("the server did not answer within {}", Span(*.0))]
    Timeout(Duration),
    /// The server reported progress, and then stopped.
    #[error("the server neither answered nor reported progress for {}", Span(*.0))]
    Stalled(Duration),
    /// The caller cancelled the request.
    #[error("the call was cancelled")]
    Cancelled,
    /// A request of the server for input was not answered in time.
    #[error("the server's request for input was not answered within {}", Span(*.0))]
    NoInput(Duration),
    /// The server requested input too often.
    #[error("the server asked for input more than {MCP_INPUT_ROUNDS_MAX} times")]
    TooManyRounds,
    /// The answer is not the result of this request.
    #[error("the server's answer is not a result of the request")]
    Unexpected,
}

/// A request that waits for its answer. Dropping it before the answer cancels the request at the server. The
/// handle is `None` after the answer or the cancellation.
struct PendingRequest(Option<RequestHandle<RoleClient>>);

impl PendingRequest {
    /// Cancels the request at the server.
    async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.0.take() {
            let cancellation = handle.cancel(Some(reason.to_owned()));
            drop(tokio::time::timeout(CANCEL_WALL_MAX, cancellation).await);
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(handle), Ok(runtime)) = (self.0.take(), runtime) {
            runtime.spawn(async move {
                let cancellation = handle.cancel(Some("the caller no longer waits for the answer".to_owned()));
                drop(tokio::time::timeout(CANCEL_WALL_MAX, cancellation).await);
            });
        }
    }
}

impl Connection {
    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// See [`RequestError`]. If the caller cancels or a time limit is reached, the request is also cancelled at the server.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        self.request_until(options.deadline(), request, options).await
    }

    pub(super) async fn request_until(
        &self,
        deadline: Instant,
        request: ClientRequest,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        let mut peer_options = PeerRequestOptions::no_options();
        if !options.meta.is_empty() {
            let mut meta = RequestMetaObject::new();
            meta.0.0.extend(options.meta.clone());
            peer_options = peer_options.with_meta(meta);
        }
        let handle = match self.peer().send_cancellable_request(request, peer_options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.request_error(error).await),
        };
        let mut progress_updates = self.notifications.subscribe(&handle.progress_token);
        let mut pending = PendingRequest(Some(handle));
        let mut idle_deadline = Instant::now() + options.idle_max;
        let mut has_progress = false;
        let mut progress_display = ProgressDisplay {
            connection: self,
            context: options.context,
            last_shown_at: None,
        };
        loop {
            let Some(handle) = pending.0.as_mut() else {
                return Err(RequestError::Cancelled);
            };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    pending.0 = None;
                    // Progress may have arrived together with the answer.
                    while let Some(update) = progress_updates.try_next() {
                        progress_display.show(&update);
                    }
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(self.request_error(error).await),
                        Err(_) => Err(self.request_error(ServiceError::TransportClosed).await),
                    };
                }
                () = options.context.cancel_token().cancelled() => {
                    pending.cancel("the caller cancelled the call").await;
                    return Err(RequestError::Cancelled);
                }
                () = tokio::time::sleep_until(idle_deadline.min(deadline)) => {
                    pending.cancel("the call took too long").await;
                    return Err(if idle_deadline >= deadline {
                        RequestError::Timeout(options.total_max())
                    } else if has_progress {
                        RequestError::Stalled(options.idle_max)
                    } else {
                        RequestError::Timeout(options.idle_max)
                    });
                }
                update = progress_updates.next() => {
                    idle_deadline = Instant::now() + options.idle_max;
                    has_progress = true;
                    progress_display.show(&update);
                }
            }
        }
    }

    /// Calls a tool. If the server requests input, the policy of the client answers, and the call is sent again with the
    /// answers. All these rounds together have the time limit of one call.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        let mut parameters = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let deadline = options.deadline();
        for _ in 0..=MCP_INPUT_ROUNDS_MAX {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters.clone()));
            match self.request_until(deadline, request, options).await? {
                ServerResult::InputRequiredResult(required) => {
                    parameters.request_state.clone_from(&required.request_state);
                    parameters.input_responses = tokio::select! {
                        biased;
                        () = options.context.cancel_token().cancelled() => return Err(RequestError::Cancelled),
                        () = tokio::time::sleep_until(deadline) => return Err(RequestError::NoInput(options.total_max())),
                        answers = self.answer_input_requests(required) => answers?,
                    };
                    if parameters.input_responses.is_none() {
                        tokio::time::sleep(ROUND_PAUSE).await;
                    }
                }
                result => return Ok(result),
            }
        }
        Err(RequestError::TooManyRounds)
    }

    /// Returns the answers to a server's requests for input. `None` if there are no requests: the server sent only a state,
    /// with which the call must be repeated.
    ///
    /// # Errors
    /// [`RequestError::Refused`] if the client refuses a request, and [`RequestError::Unexpected`] if there is neither
    /// a request nor a state.
    async fn answer_input_requests(
        &self,
        required: InputRequiredResult,
    ) -> Result<Option<InputResponses>, RequestError> {
        let requests = required.input_requests.unwrap_or_default();
        if requests.is_empty() && required.request_state.is_none() {
            return Err(RequestError::Unexpected);
        }
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let answer = self.handler().input.answer(request).await;
            answers.insert(key, answer.map_err(RequestError::Refused)?);
        }
        Ok((!answers.is_empty()).then_some(answers))
    }

    /// Converts the error of a request. The messages of the server are redacted.
    async fn request_error(&self, error: ServiceError) -> RequestError {
        match error {
            ServiceError::McpError(error) if error.code.0 == SESSION_LOST => RequestError::SessionLost,
            ServiceError::McpError(error) if error.code.0 == AUTHORIZATION_REQUIRED => {
                let scopes = error.data.and_then(|data| serde_json::from_value(data).ok());
                let required = LoginRequired {
                    server: self.server.clone(),
                    scopes: scopes.unwrap_or_default(),
                };
                RequestError::LoginRequired(required, self.redaction().quoted(&error.message))
            }
            ServiceError::McpError(error) if error.code.0 == NOT_PROCESSED => {
                RequestError::NotProcessed(self.redaction().quoted(&error.message))
            }
            ServiceError::McpError(error) if error.code.0 == TRANSPORT_FAILED => {
                RequestError::Failed(self.redaction().quoted(&error.message))
            }
            ServiceError::McpError(mut error) => {
                error.message = self.redaction().printable(&error.message).into();
                RequestError::Refused(error)
            }
            ServiceError::Cancelled { reason } => {
                let reason = reason.unwrap_or_else(|| "it gave no reason".to_owned());
                let reason = self.redaction().quoted(&reason);
                RequestError::Failed(format!("the server cancelled the call: {reason}"))
            }
            ServiceError::UnexpectedResponse => RequestError::Unexpected,
            _ => {
                let reason = self.diagnostics.end_reason().await;
                let reason = reason.unwrap_or_else(|| "the server closed it".to_owned());
                RequestError::Closed(match self.diagnostics.last_words(self.redaction()).await {
                    Some(last_words) => format!("{reason}; {last_words}"),
                    None => reason,
                })
            }
        }
    }
}

/// Shows the progress of a call to the user, at most once per [`PROGRESS_INTERVAL_MIN`].
struct ProgressDisplay<'a> {
    connection: &'a Connection,
    context: &'a ToolContext,
    last_shown_at: Option<Instant>,
}

impl ProgressDisplay<'_> {
    fn show(&mut self, progress: &ProgressNotificationParam) {
        if self
            .last_shown_at
            .is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL_MIN)
        {
            self.last_shown_at = Some(Instant::now());
            let text = progress_text(progress, self.connection.redaction());
            self.context.output().progress(&text);
        }
    }
}

fn progress_text(progress: &ProgressNotificationParam, redaction: &Redaction) -> String {
    let mut text = match (&progress.message, progress.total) {
        (Some(message), _) if !message.trim().is_empty() => redaction.printable(message),
        (_, Some(total)) => format!("{} of {total}", progress.progress),
        (_, None) => progress.progress.to_string(),
    };
    text.truncate(text.floor_char_boundary(OUTPUT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests;
