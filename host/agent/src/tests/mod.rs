//! Tests of the tool loop with a model that plays scripted steps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_strategies;
mod agent_tree;
mod agentic;
mod approval_time;
mod approvals;
mod background;
mod callers;
mod calls;
mod chaining;
mod child_calls;
mod communication;
mod compaction;
mod declared;
mod ended_by_tool;
mod entities;
mod events;
mod facade_objects;
mod facade_rules;
mod gateway;
mod gating;
mod guarantees;
mod guards;
mod injection;
mod interrupted_answers;
mod interrupted_runs;
mod introspection;
mod journal;
mod limits;
mod live_objects;
pub(crate) mod log;
mod nested;
mod nested_events;
mod numbered_objects;
mod pending_approvals;
mod pictures;
mod processes;
mod property;
mod questions;
mod recovered_tools;
mod replay;
mod resume;
mod resumed_arguments;
mod resumed_replays;
mod roles;
mod runs;
mod signals;
mod stopping;
mod streaming;
mod subagents;
mod unfolding;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::model::{
    ChatModel, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage, ToolChoice,
};
use toolwit_core::{Arguments, Message, NativeTool, Origin, Role, Tool, ToolCall, ToolContext, ToolError, ToolResult};

/// One step of the script of a [`TestModel`]: computes the response to one request.
type Step = Box<dyn FnOnce(&ChatRequest<'_>) -> Result<ChatResponse, ModelError> + Send>;

/// A request that a [`TestModel`] received.
#[derive(Clone)]
struct RecordedRequest {
    messages: Vec<Message>,
    /// The names of the declared tools.
    names: Vec<String>,
    /// The declared tools, each as the JSON text that [`serialise`] returns.
    serialised_tools: Vec<String>,
    tool_choice: ToolChoice,
}

/// A model that plays scripted steps and records its requests. The observer that [`playing`](Self::playing) installs records
/// the events of the conversation.
#[derive(Clone, Default)]
struct TestModel {
    steps: Arc<Mutex<VecDeque<Step>>>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    events: Arc<Mutex<Vec<Event>>>,
}

#[async_trait]
impl ChatModel for TestModel {
    fn name(&self) -> &str {
        "test"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        self.requests.lock().unwrap().push(RecordedRequest {
            messages: request.messages.to_vec(),
            names: request.tools.iter().map(|tool| tool.name.to_string()).collect(),
            serialised_tools: request.tools.iter().map(serialise).collect(),
            tool_choice: request.options.tool_choice,
        });
        let step = self
            .steps
            .lock()
            .unwrap()
            .pop_front()
            .expect("the script has no more steps");
        step(&request)
    }
}

impl TestModel {
    /// Returns a model that plays these steps, and the builder of a conversation with this model.
    fn playing(steps: impl IntoIterator<Item = Step>) -> (ConversationBuilder, Self) {
        let model = Self {
            steps: Arc::new(Mutex::new(steps.into_iter().collect())),
            ..Self::default()
        };
        let events = model.events.clone();
        let builder = Conversation::builder()
            .model(model.clone())
            .observer(move |event: &Event, _: &Origin| events.lock().unwrap().push(event.clone()));
        (builder, model)
    }

    fn request(&self, index: usize) -> RecordedRequest {
        self.requests.lock().unwrap()[index].clone()
    }

    fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Returns the events whose `event` field is `name`, as the JSON values that a trace contains.
    fn events_named(&self, name: &str) -> Vec<Value> {
        let events = self
            .events()
            .into_iter()
            .map(|event| serde_json::to_value(event).unwrap());
        events.filter(|event| event["event"] == name).collect()
    }
}

/// Returns the name, the description and the input schema of a tool as the text of a JSON array.
fn serialise(tool: &DeclaredTool) -> String {
    json!([tool.name, tool.definition.description, *tool.definition.input_schema]).to_string()
}

/// Returns a step in which the model responds with text.
fn reply(text: &str) -> Step {
    let text = text.to_owned();
    Box::new(|_| Ok(ChatResponse::new(text, Vec::new())))
}

/// Returns a step in which the model calls tools. The id of a call is `<messages in the request>-<index of the call>`.
fn call<const N: usize>(calls: [(&str, Value); N]) -> Step {
    raw_calls(
        calls
            .map(|(name, arguments)| (name.to_owned(), arguments.to_string()))
            .to_vec(),
    )
}

/// Returns a step like [`call`], with argument texts that may be invalid JSON.
fn raw_calls(calls: Vec<(String, String)>) -> Step {
    Box::new(|request| {
        let message_count = request.messages.len();
        let calls = calls
            .into_iter()
            .enumerate()
            .map(|(index, (name, arguments))| ToolCall {
                id: format!("{message_count}-{index}"),
                name,
                arguments,
            });
        Ok(ChatResponse::new("", calls.collect()))
    })
}

/// Returns a step whose response is the response of `step` after `edit` changed it.
fn edit_response(step: Step, edit: impl FnOnce(&mut ChatResponse) + Send + 'static) -> Step {
    Box::new(move |request| {
        let mut response = step(request)?;
        edit(&mut response);
        Ok(response)
    })
}

/// Returns a tool that accepts any arguments and computes its result with `handler`.
fn tool(
    name: &str,
    handler: impl Fn(Arguments, ToolContext) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let schema = json!({"type": "object"});
    let handler = Arc::new(handler);
    let tool = NativeTool::new(name, format!("Is {name}."), schema, move |arguments, context| {
        let handler = handler.clone();
        async move { handler(arguments, context) }
    });
    Arc::new(tool.unwrap())
}

/// Returns a tool that returns its name.
fn echo(name: &str) -> Arc<dyn Tool> {
    let text = name.to_owned();
    tool(name, move |_, _| Ok(ToolResult::text(text.clone())))
}

/// Returns the texts of the tool results in a history, in order.
fn tool_results(history: &[Message]) -> Vec<&str> {
    let results = history
        .iter()
        .filter(|message| matches!(message.role, Role::Tool { .. }));
    results.map(Message::content).collect()
}

/// Checks that every provider accepts the history. Each call must have a unique id, a valid tool name, a JSON object as
/// arguments and exactly one result. The results must directly follow the message with the calls.
fn assert_valid(history: &[Message]) {
    let mut ids = HashSet::new();
    let mut open_call_ids: Vec<&str> = Vec::new();
    for message in history {
        match &message.role {
            Role::Tool { tool_call_id, .. } => {
                let position = open_call_ids.iter().position(|id| id == tool_call_id);
                open_call_ids.remove(position.unwrap_or_else(|| panic!("`{tool_call_id}` has two results or no call")));
            }
            Role::Assistant { tool_calls, .. } => {
                assert!(open_call_ids.is_empty(), "{open_call_ids:?} have no result");
                for call in tool_calls {
                    assert!(ids.insert(&call.id), "`{}` is the id of two calls", call.id);
                    let arguments = serde_json::from_str::<Value>(&call.arguments);
                    assert!(arguments.is_ok_and(|value| value.is_object()), "{}", call.arguments);
                    assert!(toolwit_core::ToolName::parse(&call.name).is_some(), "{}", call.name);
                    open_call_ids.push(&call.id);
                }
            }
            _ => assert!(open_call_ids.is_empty(), "{open_call_ids:?} have no result"),
        }
    }
    assert!(open_call_ids.is_empty(), "{open_call_ids:?} have no result");
}
