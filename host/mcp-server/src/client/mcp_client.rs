//! The MCP client that made a call, as the called tools see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, InputRequest};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskContext;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::client_request::{ClientRequest, capability_name, is_valid_answer, missing_capability};
use super::input_round::{APPROVAL_KEY, InputRound};
use super::outbox::{CLIENT_GONE, LogMessage, Outbox, OutgoingMessage, Question};
use super::task_slot::TaskSlot;
use toolwit::limits::ANSWER_WALL_MAX;
use toolwit::tool::{CallChain, LogLevel, ToolError};
use toolwit::{Error, ErrorKind, Phase, ToolContext};

const TOO_LATE: &str = "the user did not answer in time";

/// The MCP client that made a call. A native tool gets it from the context of the call, with [`McpClient::of`].
///
/// ```
/// use serde_json::json;
/// use toolwit::tool::{ToolError, ToolResult};
/// use toolwit::{NativeTool, ToolContext};
/// use toolwit_mcp_server::{ClientRequest, LogLevel, McpClient};
///
/// let greet = NativeTool::new("greet", "Greets the user.", json!({"type": "object"}), |_, context: ToolContext| async move {
///     let Some(client) = McpClient::of(&context) else { return Ok(ToolResult::text("Hello!")) };
///     client.log(LogLevel::Info, "greet", json!("asking for the name"));
///     let name = ClientRequest::Form {
///         message: "What is your name?".to_owned(),
///         schema: json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
///     };
///     let answers = client.ask([("name", name)]).await?;
///     Ok::<_, ToolError>(ToolResult::text(format!("Hello, {}!", answers["name"]["content"]["name"])))
/// });
/// # assert!(greet.is_ok());
/// ```
#[derive(Clone)]
pub struct McpClient {
    capabilities: Arc<ClientCapabilities>,
    log_min: Option<LogLevel>,
    /// Sends messages to the [`Outbox`] of the call.
    messages: mpsc::Sender<OutgoingMessage>,
    /// The round of a request without a session. `None` for a request with a session: the server sends questions during
    /// the call.
    round: Option<Arc<InputRound>>,
    /// The task that the call may become.
    task_slot: TaskSlot,
    /// Whether another tool made the call. The client can repeat only calls that it made itself.
    pub(super) is_nested: bool,
}

impl McpClient {
    /// Creates the client of a request, and its outbox. [`Outbox::send`] must be polled as long as the call runs.
    pub(crate) fn of_request(
        request: &RequestContext<RoleServer>,
        round: Option<Arc<InputRound>>,
        log_min: Option<LogLevel>,
    ) -> (Self, Outbox) {
        let (messages, outbox) = Outbox::new(request);
        let client = Self {
            capabilities: Arc::new(request.client_capabilities().unwrap_or_default()),
            log_min,
            messages,
            round,
            task_slot: request.extensions.get::<TaskSlot>().cloned().unwrap_or_default(),
            is_nested: false,
        };
        (client, outbox)
    }

    /// Returns the client that made a call. `None` if the call does not come from an MCP client.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<Self> {
        let client = context.extension::<Self>()?;
        Some(Self {
            is_nested: CallChain::of(context).len() > 1,
            ..client.clone()
        })
    }

    /// Returns whether the request is valid, and the client declared the capability for it.
    #[must_use]
    pub fn can_answer(&self, request: &ClientRequest) -> bool {
        let request = request.to_wire();
        request.is_ok_and(|request| missing_capability(&request, &self.capabilities).is_none())
    }

    /// Sends requests to the client, and returns the answers under the keys of the requests.
    ///
    /// From revision 2026-07-28, this function fails if an answer is missing. The call then ends with the requests, and
    /// the client repeats the call with the answers. The tool runs again from its start, so it must ask before it changes
    /// anything. Answers from earlier repetitions are returned at once: a tool can ask several times, with different keys.
    /// A call that has become a task is not repeated: this function waits for the answers.
    ///
    /// # Errors
    /// If a request is invalid, a key is reserved (`approval` and `approval-…`), the client lacks a capability, or an answer is missing
    /// or invalid. From revision 2026-07-28 also if another tool makes this call, unless the call has become a task. The
    /// tool must return the error.
    pub async fn ask<K: Into<String>>(
        &self,
        requests: impl IntoIterator<Item = (K, ClientRequest)>,
    ) -> Result<BTreeMap<String, Value>, ToolError> {
        let mut wire_requests = BTreeMap::new();
        for (key, request) in requests {
            let key = key.into();
            if is_reserved(&key) {
                let message = format!("the key `{key}` of a request to the client is reserved");
                return Err(ToolError::Operator(Error::new(
                    ErrorKind::Configuration,
                    Phase::Execute,
                    message,
                )));
            }
            wire_requests.insert(key, request.to_wire().map_err(ToolError::Operator)?);
        }
        for request in wire_requests.values() {
            if let Some(missing) = missing_capability(request, &self.capabilities) {
                if let Some(round) = &self.round {
                    round.set_missing_capabilities(missing);
                }
                return Err(unanswered(format!(
                    "the client does not offer `{}`",
                    capability_name(request)
                )));
            }
        }
        if let Some(task) = self.task_slot.task() {
            return ask_in_task(task, wire_requests).await;
        }
        match &self.round {
            // When the client repeats the call, the calling tools would run a second time.
            Some(_) if self.is_nested => Err(unanswered(
                "the client cannot be asked during a call that another tool makes",
            )),
            Some(round) => round
                .ask(wire_requests)
                .ok_or_else(|| unanswered("the client is asked first")),
            None => self.ask_during_call(wire_requests).await,
        }
    }

    async fn ask_during_call(
        &self,
        requests: BTreeMap<String, InputRequest>,
    ) -> Result<BTreeMap<String, Value>, ToolError> {
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            let answer = self.ask_one(request.clone()).await.map_err(unanswered)?;
            if !is_valid_answer(&request, &answer) {
                return Err(unanswered("the client sent an invalid answer"));
            }
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Sends one request during the call, or as an input request of the task that the call has become.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) async fn ask_one(&self, request: InputRequest) -> Result<Value, &'static str> {
        if let Some(task) = self.task_slot.task() {
            let answer = tokio::time::timeout(ANSWER_WALL_MAX, task.request_input(next_approval_key(), request)).await;
            return answer.map_err(|_| TOO_LATE)?.map_err(|_| "the task was cancelled");
        }
        let (answer, receiver) = oneshot::channel();
        let question = OutgoingMessage::Question(Box::new(Question { request, answer }));
        if self.messages.send(question).await.is_err() {
            return Err(CLIENT_GONE);
        }
        // The time starts now, although the question may wait until earlier questions are answered.
        let answered = tokio::time::timeout(ANSWER_WALL_MAX, receiver).await;
        answered
            .map_err(|_| TOO_LATE)?
            .unwrap_or(Err("the client did not answer"))
    }

    /// Returns whether a question ends the call, so that the client repeats it with the answer.
    pub(crate) fn repeats_calls(&self) -> bool {
        self.round().is_some()
    }

    /// Returns whether the client has the capability for a request.
    pub(crate) fn has_capability_for(&self, request: &InputRequest) -> bool {
        missing_capability(request, &self.capabilities).is_none()
    }

    /// Returns the round of a request without a session. `None` for a request with a session, or if the call has become a
    /// task.
    pub(crate) fn round(&self) -> Option<&InputRound> {
        self.round.as_deref().filter(|_| self.task_slot.task().is_none())
    }

    /// Sends a message to the log of the client, if the client wants messages of this severity. The message is dropped if
    /// too many messages wait for a slow client, or if the call has become a task.
    pub fn log(&self, level: LogLevel, logger: &str, data: Value) {
        let is_task = self.task_slot.task().is_some();
        if !is_task && self.log_min.is_some_and(|min| level >= min) {
            let logger = logger.to_owned();
            let message = LogMessage { level, logger, data };
            drop(self.messages.try_send(OutgoingMessage::Log(message)));
        }
    }
}

impl std::fmt::Debug for McpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpClient").finish_non_exhaustive()
    }
}

/// Sends all requests at the same time, as input requests of a task.
async fn ask_in_task(
    task: &TaskContext,
    requests: BTreeMap<String, InputRequest>,
) -> Result<BTreeMap<String, Value>, ToolError> {
    let questions = requests.into_iter().map(|(key, request)| async move {
        let answer = tokio::time::timeout(ANSWER_WALL_MAX, task.request_input(key.clone(), request.clone())).await;
        let answer = answer.map_err(|_| unanswered(TOO_LATE))?;
        let answer = answer.map_err(|_| unanswered("the task was cancelled, or it used the key of a request twice"))?;
        if is_valid_answer(&request, &answer) {
            Ok((key, answer))
        } else {
            Err(unanswered("the client sent an invalid answer"))
        }
    });
    futures::future::try_join_all(questions)
        .await
        .map(|answers| answers.into_iter().collect())
}

/// Returns whether a key is that of a question for an approval: `approval`, and in a task `approval-` with a number.
fn is_reserved(key: &str) -> bool {
    key.strip_prefix(APPROVAL_KEY)
        .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('-'))
}

/// Returns a new key for the question for an approval in a task.
fn next_approval_key() -> String {
    static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
    format!("{APPROVAL_KEY}-{}", NEXT_NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn unanswered(reason: impl Into<String>) -> ToolError {
    ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keys_of_approvals_are_reserved() {
        assert!(is_reserved(APPROVAL_KEY) && is_reserved(&next_approval_key()));
        assert!(!is_reserved("approval_code") && !is_reserved("code"));
    }
}
