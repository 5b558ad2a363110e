//! The client that made a call, for its tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, InputRequest};
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskContext;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::client_request::{ClientRequest, capability_name, fits, missing_capability};
use super::input_round::{APPROVAL, InputRound};
use super::log_level::LogLevel;
use super::outbox::{GONE, LogMessage, Outbox, OutgoingMessage, Question};
use super::task_slot::TaskSlot;
use toolwit::tool::{CallChain, ToolError};
use toolwit::{Error, ErrorKind, Phase, ToolContext};

/// Maximum time that the client has to answer a request, the wait for earlier questions included.
const ANSWER_MAX: Duration = Duration::from_secs(10 * 60);

const TOO_LATE: &str = "the user did not answer in time";

/// The MCP client that made a call. A native tool reaches it through the context of its call.
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
    outbox: mpsc::Sender<OutgoingMessage>,
    /// The round of a request without a session. With a session, it is `None`, and the server sends requests during the
    /// call.
    round: Option<Arc<InputRound>>,
    /// The task that the call may become.
    slot: TaskSlot,
    /// Whether another tool made the call. Then the client cannot answer by repeating the call.
    is_nested: bool,
}

impl McpClient {
    /// Creates the client of a request. [`Outbox::send`] must be polled as long as the call runs.
    pub(crate) fn of_request(
        request: &RequestContext<RoleServer>,
        round: Option<Arc<InputRound>>,
        log_min: Option<LogLevel>,
    ) -> (Self, Outbox) {
        let (outbox, receiver) = Outbox::new(request);
        let client = Self {
            capabilities: Arc::new(request.client_capabilities().unwrap_or_default()),
            log_min,
            outbox,
            round,
            slot: request.extensions.get::<TaskSlot>().cloned().unwrap_or_default(),
            is_nested: false,
        };
        (client, receiver)
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

    /// Returns whether the request is valid, and the client declared that it answers such requests.
    #[must_use]
    pub fn can_answer(&self, request: &ClientRequest) -> bool {
        let request = request.to_wire();
        request.is_ok_and(|request| missing_capability(&request, &self.capabilities).is_none())
    }

    /// Sends requests to the client, and returns its answers under the same keys.
    ///
    /// From revision 2026-07-28 the call ends here if an answer is missing, and the client repeats it with the answers.
    /// The tool then runs again from its start: it must ask before it changes anything. An answer to an earlier
    /// question is returned at once, so that a tool can ask several times, with different keys.
    ///
    /// # Errors
    /// If a request is invalid, a key is the reserved `approval`, or the client lacks a capability, does not answer, or
    /// answers only when it repeats the call. From revision 2026-07-28 also if another tool calls this one, unless the
    /// call is a task. The tool must return the error.
    pub async fn ask<K: Into<String>>(
        &self,
        requests: impl IntoIterator<Item = (K, ClientRequest)>,
    ) -> Result<BTreeMap<String, Value>, ToolError> {
        let mut wire_requests = BTreeMap::new();
        for (key, request) in requests {
            let key = key.into();
            if key == APPROVAL {
                let message = format!("the key `{APPROVAL}` of a request to the client is reserved");
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
                    round.require(missing);
                }
                return Err(unanswered(format!(
                    "the client does not offer `{}`",
                    capability_name(request)
                )));
            }
        }
        if let Some(task) = self.slot.task() {
            return ask_in_task(task, wire_requests).await;
        }
        match &self.round {
            // The calling tools would run again when the client repeats the call.
            Some(_) if self.is_nested => Err(unanswered(
                "another tool calls this one, so that the client cannot be asked",
            )),
            Some(round) => round
                .ask(wire_requests)
                .ok_or_else(|| unanswered("the client is asked first")),
            None => self.ask_now(wire_requests).await,
        }
    }

    async fn ask_now(&self, requests: BTreeMap<String, InputRequest>) -> Result<BTreeMap<String, Value>, ToolError> {
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            let answer = self.ask_one(request.clone()).await.map_err(unanswered)?;
            if !fits(&request, &answer) {
                return Err(unanswered("the client sent an invalid answer"));
            }
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Sends a request during the call, or as a request of its task.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) async fn ask_one(&self, request: InputRequest) -> Result<Value, &'static str> {
        if let Some(task) = self.slot.task() {
            let answer = tokio::time::timeout(ANSWER_MAX, task.request_input(next_key(), request)).await;
            return answer.map_err(|_| TOO_LATE)?.map_err(|_| "the task was cancelled");
        }
        let (answer, receiver) = oneshot::channel();
        let question = OutgoingMessage::Question(Box::new(Question { request, answer }));
        if self.outbox.send(question).await.is_err() {
            return Err(GONE);
        }
        // Earlier questions may use a part of the time.
        let answered = tokio::time::timeout(ANSWER_MAX, receiver).await;
        answered
            .map_err(|_| TOO_LATE)?
            .unwrap_or(Err("the client did not answer"))
    }

    /// Returns whether the client has the capability for a request.
    pub(crate) fn offers(&self, request: &InputRequest) -> bool {
        missing_capability(request, &self.capabilities).is_none()
    }

    /// Returns the round of a request without a session. `None` if the call has become a task.
    pub(crate) fn round(&self) -> Option<&InputRound> {
        self.round.as_deref().filter(|_| self.slot.task().is_none())
    }

    /// Sends a message to the log of the client, if it wants messages of this severity. A message that a slow client
    /// cannot receive is dropped, and so is one of a call that became a task.
    pub fn log(&self, level: LogLevel, logger: &str, data: Value) {
        let has_stream = self.slot.task().is_none();
        if has_stream && self.log_min.is_some_and(|min| level >= min) {
            let logger = logger.to_owned();
            let message = LogMessage { level, logger, data };
            drop(self.outbox.try_send(OutgoingMessage::Log(message)));
        }
    }
}

impl std::fmt::Debug for McpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpClient").finish_non_exhaustive()
    }
}

/// Asks the client through a task, all requests at the same time.
async fn ask_in_task(
    task: &TaskContext,
    requests: BTreeMap<String, InputRequest>,
) -> Result<BTreeMap<String, Value>, ToolError> {
    let questions = requests.into_iter().map(|(key, request)| async move {
        let answer = tokio::time::timeout(ANSWER_MAX, task.request_input(key.clone(), request.clone())).await;
        let answer = answer.map_err(|_| unanswered(TOO_LATE))?;
        let answer = answer.map_err(|_| unanswered("the task was cancelled, or asks twice under one key"))?;
        if fits(&request, &answer) {
            Ok((key, answer))
        } else {
            Err(unanswered("the client sent an invalid answer"))
        }
    });
    futures::future::try_join_all(questions)
        .await
        .map(|answers| answers.into_iter().collect())
}

/// Returns a key for an approval question of a task. Each key is returned once.
fn next_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{APPROVAL}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn unanswered(reason: impl Into<String>) -> ToolError {
    ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, reason))
}
