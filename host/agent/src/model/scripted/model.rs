//! The scripted model itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::protocol;
use super::shown::Shown;
use super::template;
use super::turn::{Act, Call, CallArguments, ScriptedTurn};
use crate::model::{ChatModel, ChatRequest, ChatResponse, DeclaredTool, ModelError, TokenUsage};
use toolwit_core::{Message, ToolCall, ToolName};

/// How many bytes are counted as one token.
const TOKEN_BYTES: usize = 4;

/// A model that plays its turns one by one, and insists on what each expects to be shown.
///
/// It refuses a history that a provider would refuse (a call without its result), an inference after its last turn, and,
/// when [`ChatModel::finish`] is called, turns that are left over; a turn that could not be played stays the next one.
///
/// Unless a turn says what it costs, a token is four bytes, rounded up: of all messages' text, calls and call ids and all
/// tools' names, descriptions and schemas for the input, of text and calls for the output; nothing is cached.
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
    played: Mutex<Played>,
}

/// What a scripted model was shown in one inference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The history.
    pub messages: Vec<Message>,
    /// The names of the declared tools.
    pub tools: Vec<ToolName>,
}

#[derive(Debug, Default)]
struct Played {
    turns: usize,
    calls: u64,
    requests: Vec<RecordedRequest>,
}

/// What comes of a turn.
enum Outcome {
    Said(ChatResponse),
    Failed(ModelError),
    Silent,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedModel {
    /// Begins a script without turns.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: "scripted".to_owned(),
            prompt: None,
            turns: Vec::new(),
            played: Mutex::default(),
        }
    }

    /// Names the script; error messages and [`ChatModel::name`] say it.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Says what the user asks when the script is played.
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

    /// Adds a turn that answers.
    #[must_use]
    pub fn answer(self, text: impl Into<String>) -> Self {
        self.turn(ScriptedTurn::answer(text))
    }

    /// Returns what the user asks when the script is played.
    #[must_use]
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Counts the turns that are still to be played.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        self.turns.len().saturating_sub(self.played().turns)
    }

    /// Returns what the model was shown so far, the inferences that it refused included.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.played().requests.clone()
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn play(&self, request: ChatRequest<'_>) -> Result<Outcome, ModelError> {
        let mut played = self.played();
        played.requests.push(RecordedRequest {
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        });
        let number = played.turns + 1;
        let Some(turn) = self.turns.get(played.turns) else {
            let (shown, all) = (request.messages.last().map_or("", Message::content), self.turns.len());
            let last = super::shown::excerpt(shown);
            return Err(self.broken(format!(
                "all {all} turns were played, but the model is asked again after {last}"
            )));
        };
        let failed = |why: String| self.broken(format!("turn {number} of {}: {why}", self.turns.len()));
        if let Some(flaw) = turn.flaw().or_else(|| protocol::flaw(request)) {
            return Err(failed(flaw));
        }
        let shown = Shown::new(request);
        let failures = turn
            .expectation
            .as_ref()
            .map(|expected| expected.failures(&shown))
            .unwrap_or_default();
        if !failures.is_empty() {
            return Err(failed(failures.join("; ")));
        }
        let outcome = match &turn.act {
            Act::Speak { text, calls } => {
                let response = speak(turn, text, calls, &shown, played.calls).map_err(failed)?;
                played.calls += response.tool_calls.len() as u64;
                Outcome::Said(with_usage(response, turn.usage, request))
            }
            Act::Fail(error) => Outcome::Failed(error.clone()),
            Act::Silence => Outcome::Silent,
        };
        played.turns += 1;
        Ok(outcome)
    }

    fn broken(&self, why: String) -> ModelError {
        ModelError::Script {
            message: format!("the script `{}` does not fit: {why}", self.name),
        }
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        if request.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        match self.play(request)? {
            Outcome::Said(response) => Ok(response),
            Outcome::Failed(error) => Err(error),
            Outcome::Silent => {
                request.cancel.cancelled().await;
                Err(ModelError::Cancelled)
            }
        }
    }

    fn finish(&self) -> Result<(), ModelError> {
        match self.turns_left() {
            0 => Ok(()),
            left => {
                let (played, all) = (self.turns.len() - left, self.turns.len());
                Err(self.broken(format!("it ended after {played} of {all} turns")))
            }
        }
    }
}

fn speak(
    turn: &ScriptedTurn,
    text: &str,
    calls: &[Call],
    shown: &Shown<'_>,
    made: u64,
) -> Result<ChatResponse, String> {
    let mut tool_calls = Vec::with_capacity(calls.len());
    for (number, call) in (made + 1..).zip(calls) {
        tool_calls.push(ToolCall {
            id: call.id.clone().unwrap_or_else(|| format!("call_{number}")),
            name: template::fill_text(&call.tool, shown)?,
            arguments: match &call.arguments {
                CallArguments::Json(value) => template::fill_value(value, shown)?.to_string(),
                CallArguments::Verbatim(text) => text.clone(),
            },
        });
    }
    let mut response = ChatResponse::new(template::fill_text(text, shown)?, tool_calls);
    if let Some(finish) = &turn.finish {
        response.finish = finish.clone();
    }
    Ok(response)
}

fn with_usage(mut response: ChatResponse, said: Option<TokenUsage>, request: ChatRequest<'_>) -> ChatResponse {
    response.usage = said.unwrap_or_else(|| {
        let input = request.messages.iter().map(message_bytes).sum::<usize>();
        let tools = request.tools.iter().map(tool_bytes).sum::<usize>();
        let output = response.content.len() + response.tool_calls.iter().map(call_bytes).sum::<usize>();
        TokenUsage::new(tokens(input + tools), 0, tokens(output))
    });
    response
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN_BYTES) as u64
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
