//! The scripted model, and the progress of its script.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::provider_rules;
use super::request_view::{RequestView, excerpt};
use super::scripted_turn::{CallArguments, ScriptedCall, ScriptedTurn, TurnAction};
use super::template;
use crate::model::{ChatModel, ChatRequest, ChatResponse, DeclaredTool, ModelError, TokenUsage};
use toolwit_core::{Message, ToolCall, ToolName};

/// Number of bytes that count as one token in estimates.
const BYTES_PER_TOKEN: usize = 4;

/// A model that plays its turns in order. Before each turn, it checks the request against the expectation of the turn.
///
/// The model rejects a history that a provider would reject, such as a call without its result. It also rejects each request
/// after its last turn. If a request fails the checks of a turn, that turn remains the next turn. [`ChatModel::end_use`] fails
/// if turns were not played.
///
/// Unless a turn sets its token usage, the usage is estimated at four bytes per token, rounded up. The input consists of the
/// text and the calls of all messages, and the names, descriptions and input schemas of all tools. The output consists of the
/// text and the calls of the response. The estimate has no cached tokens.
///
/// ```
/// use serde_json::json;
/// use toolwit_agent::model::ScriptedModel;
///
/// let model = ScriptedModel::new()
///     .call("search_customer", json!({ "name": "John Smith" }))
///     .call("average_spend", json!({ "customer_id": "{{result.id}}" }))
///     .answer("John Smith spends {{result.amount}} a month.");
/// assert_eq!(model.turns_left(), 3);
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    pub(super) name: String,
    pub(super) prompt: Option<String>,
    pub(super) turns: Vec<ScriptedTurn>,
    progress: Mutex<ScriptProgress>,
}

/// A request that a scripted model received, with the names of the tools instead of their definitions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// History of the request.
    pub messages: Vec<Message>,
    /// Names of the declared tools.
    pub tools: Vec<ToolName>,
}

/// The progress of a script.
#[derive(Debug, Default)]
struct ScriptProgress {
    played_turn_count: usize,
    /// The number of calls in all responses so far.
    call_count: u64,
    requests: Vec<RecordedRequest>,
}

/// The behaviour of the model in a turn that was played.
enum TurnOutcome {
    Responded(ChatResponse),
    Failed(ModelError),
    Silent,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedModel {
    /// Creates a script without turns.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: "scripted".to_owned(),
            prompt: None,
            turns: Vec::new(),
            progress: Mutex::default(),
        }
    }

    /// Sets the name of the script, which error messages and [`ChatModel::name`] use.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the user's prompt for which the script is written. The model does not compare it with its requests.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, turn: ScriptedTurn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Adds a turn that calls one tool.
    #[must_use]
    pub fn call(self, tool: impl Into<String>, arguments: Value) -> Self {
        self.turn(ScriptedTurn::call(tool, arguments))
    }

    /// Adds a turn that answers without calling a tool.
    #[must_use]
    pub fn answer(self, text: impl Into<String>) -> Self {
        self.turn(ScriptedTurn::answer(text))
    }

    /// Returns the user's prompt for which the script is written, if it is set.
    #[must_use]
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Returns the number of turns that have not been played.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        self.turns.len().saturating_sub(self.progress().played_turn_count)
    }

    /// Returns the requests that the model has received, including those that it rejected.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.progress().requests.clone()
    }

    fn progress(&self) -> MutexGuard<'_, ScriptProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays the next turn if the request meets its expectation.
    fn play(&self, request: ChatRequest<'_>) -> Result<TurnOutcome, ModelError> {
        let mut progress = self.progress();
        progress.requests.push(RecordedRequest {
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        });
        let number = progress.played_turn_count + 1;
        let Some(turn) = self.turns.get(progress.played_turn_count) else {
            let last_message = excerpt(request.messages.last().map_or("", Message::content));
            return Err(self.mismatch(format!(
                "all {} turns were played, but there is another request, after {last_message}",
                self.turns.len()
            )));
        };
        let turn_error = |why: String| self.mismatch(format!("turn {number} of {}: {why}", self.turns.len()));
        if let Some(flaw) = turn.flaw().or_else(|| provider_rules::flaw(request)) {
            return Err(turn_error(flaw));
        }
        let view = RequestView::new(request);
        let failures = turn
            .expectation
            .as_ref()
            .map(|expected| expected.failures(&view))
            .unwrap_or_default();
        if !failures.is_empty() {
            return Err(turn_error(failures.join("; ")));
        }
        let outcome = match &turn.action {
            TurnAction::Respond { text, calls } => {
                let response = respond(turn, text, calls, &view, progress.call_count).map_err(turn_error)?;
                progress.call_count += response.tool_calls.len() as u64;
                TurnOutcome::Responded(with_usage(response, turn.usage, request))
            }
            TurnAction::Fail(error) => TurnOutcome::Failed(error.clone()),
            TurnAction::Silence => TurnOutcome::Silent,
        };
        progress.played_turn_count += 1;
        Ok(outcome)
    }

    /// Returns the error for requests that do not match the script. `why` is the reason.
    fn mismatch(&self, why: String) -> ModelError {
        ModelError::Script {
            message: format!("the script `{}` does not match: {why}", self.name),
        }
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("scripted")
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        if request.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        match self.play(request)? {
            TurnOutcome::Responded(response) => Ok(response),
            TurnOutcome::Failed(error) => Err(error),
            TurnOutcome::Silent => {
                request.cancel.cancelled().await;
                Err(ModelError::Cancelled)
            }
        }
    }

    fn end_use(&self) -> Result<(), ModelError> {
        match self.turns_left() {
            0 => Ok(()),
            turns_left => {
                let total = self.turns.len();
                let played = total - turns_left;
                Err(self.mismatch(format!("it ended after {played} of {total} turns")))
            }
        }
    }
}

/// Returns the response of a turn, with its references replaced by values of the request. `earlier_call_count` is the number
/// of calls in earlier responses.
fn respond(
    turn: &ScriptedTurn,
    text: &str,
    calls: &[ScriptedCall],
    request: &RequestView<'_>,
    earlier_call_count: u64,
) -> Result<ChatResponse, String> {
    let mut tool_calls = Vec::with_capacity(calls.len());
    for (number, call) in (earlier_call_count + 1..).zip(calls) {
        tool_calls.push(ToolCall {
            id: call.id.clone().unwrap_or_else(|| format!("call_{number}")),
            name: template::fill_text(&call.tool, request)?,
            arguments: match &call.arguments {
                CallArguments::Json(value) => template::fill_value(value, request)?.to_string(),
                CallArguments::Verbatim(text) => text.clone(),
            },
        });
    }
    let mut response = ChatResponse::new(template::fill_text(text, request)?, tool_calls);
    if let Some(finish) = &turn.finish {
        response.finish = finish.clone();
    }
    Ok(response)
}

/// Sets the usage of a response to the usage of its turn, or to an estimate if the turn sets no usage.
fn with_usage(mut response: ChatResponse, turn_usage: Option<TokenUsage>, request: ChatRequest<'_>) -> ChatResponse {
    response.usage = turn_usage.unwrap_or_else(|| {
        let history_bytes = request.messages.iter().map(message_bytes).sum::<usize>();
        let tools_bytes = request.tools.iter().map(tool_bytes).sum::<usize>();
        let output_bytes = response.content.len() + response.tool_calls.iter().map(call_bytes).sum::<usize>();
        TokenUsage::new(
            estimate_tokens(history_bytes + tools_bytes),
            0,
            estimate_tokens(output_bytes),
        )
    });
    response
}

/// Returns the estimated number of tokens of a text, rounded up.
fn estimate_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

fn message_bytes(message: &Message) -> usize {
    message.content().len() + message.tool_calls().iter().map(call_bytes).sum::<usize>()
}

fn call_bytes(call: &ToolCall) -> usize {
    call.id.len() + call.name.len() + call.arguments.len()
}

fn tool_bytes(tool: &DeclaredTool) -> usize {
    let schema = tool.definition.input_schema.to_string();
    tool.name.as_str().len() + tool.definition.description.len() + schema.len()
}
