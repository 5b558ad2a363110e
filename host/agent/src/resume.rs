//! A conversation that goes on from its events, in another process or on another branch.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;

use super::conversation::Conversation;
use super::event::Event;
use super::gateway::{self, CALL_TOOL};
use crate::injection::{CompletedCall, InjectionContext, InjectionStrategy, PastCall};
use toolwit_core::{
    Arguments, Artifact, NamedTool, Tool, ToolCall, ToolContext, ToolDefinition, ToolError, ToolId, ToolLookup,
    ToolName, ToolResult, parse_arguments,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// Brings the tools of a conversation to where its events left them.
///
/// What is visible, under which names and in which order, is what the events say, and nothing else. What runs behind a name is
/// found anew: facades open as they did, strategies are asked what they would add, and for the rest, such as the methods of
/// objects that lived in another process, there is a tool that says so.
pub(super) fn replay(conversation: &mut Conversation, events: Vec<Event>) {
    let mut replay = Replay {
        conversation,
        calls: HashMap::new(),
        offered: HashMap::new(),
        iteration: 0,
    };
    for event in events {
        replay.take(event);
    }
}

struct Replay<'c> {
    conversation: &'c mut Conversation,
    /// The calls that the model asked for, by id.
    calls: HashMap<String, ToolCall>,
    /// What the strategies would add after the call that was answered last.
    offered: HashMap<ToolId, Arc<dyn Tool>>,
    iteration: u32,
}

impl Replay<'_> {
    fn take(&mut self, event: Event) {
        let toolbox = &mut self.conversation.toolbox;
        match event {
            Event::TurnStarted { turn, .. } => {
                self.conversation.turns = turn;
                toolbox.start_turn();
            }
            Event::ModelAnswered {
                iteration, tool_calls, ..
            } => {
                self.iteration = iteration;
                let calls = tool_calls.into_iter().map(|call| (call.id.clone(), call));
                self.calls.extend(calls);
            }
            Event::ToolStarted { name, .. } => toolbox.touch(&name),
            // A call that goes on is not done: what was brought came with its late result.
            Event::ToolFinished { goes_on: true, .. } => {}
            Event::ToolFinished {
                id,
                name,
                tool,
                is_error,
                content,
                artifacts,
                ..
            } => {
                let past = PastCall {
                    is_error,
                    artifacts,
                    ..self.past(&id, name, tool)
                };
                self.answered(&id, past, content);
            }
            Event::LateResult {
                id,
                call,
                name,
                tool,
                is_error,
                content,
                artifacts,
            } => {
                let past = PastCall {
                    is_error,
                    artifacts,
                    ..self.past(&call, name, tool)
                };
                self.answered(&id, past, content);
            }
            Event::ToolsInjected {
                trigger,
                definitions,
                names,
                ..
            } => {
                for (name, definition) in names.into_iter().zip(definitions) {
                    self.adopt(&trigger, name, definition);
                }
            }
            Event::ToolsRebound { names, .. } => self.rebind(&names),
            Event::ToolsRemoved { names, .. } => toolbox.forget(&names),
            Event::ToolsEvicted { names } | Event::ToolsFolded { names } => toolbox.hide(&names),
            Event::ToolsRestored { names } => drop(toolbox.restore(&names)),
            _ => {}
        }
    }

    /// A call of this turn that the model asked for under an id.
    fn past(&self, asked: &str, name: ToolName, tool: ToolId) -> PastCall {
        PastCall {
            arguments: self.arguments(asked),
            ..PastCall::new(self.conversation.turns, name, tool)
        }
    }

    /// The arguments of a call, as the tool got them.
    fn arguments(&self, id: &str) -> Arguments {
        let Some(call) = self.calls.get(id) else {
            return Arguments::new();
        };
        let arguments = parse_arguments(&call.arguments).map(|parsed| parsed.arguments);
        let arguments = arguments.unwrap_or_default();
        match gateway::unwrap(&arguments) {
            Ok((_, inner)) if call.name == CALL_TOOL => inner,
            _ => arguments,
        }
    }

    /// Remembers a call, and asks the strategies what they would add after it.
    fn answered(&mut self, id: &str, past: PastCall, content: String) {
        self.offered.clear();
        if let ToolLookup::Found(named) = self.conversation.toolbox.look_up(past.name.as_str()) {
            let offer = catch_unwind(AssertUnwindSafe(|| self.offer(id, &past, named, content)));
            match offer {
                Ok(tools) => {
                    let tools = tools.into_iter().map(|tool| (tool.definition().id.clone(), tool));
                    self.offered.extend(tools);
                }
                Err(_) => {
                    tracing::error!(tool = %past.name, "a strategy or a facade panicked; its tools are not there")
                }
            }
        }
        self.conversation.toolbox.calls.push(past);
    }

    fn offer(&self, id: &str, past: &PastCall, named: NamedTool, content: String) -> Vec<Arc<dyn Tool>> {
        let conversation = &*self.conversation;
        let mut result = match past.is_error {
            true => ToolResult::error(content),
            false => ToolResult::text(content),
        };
        let artifact = |kind: &String| Artifact::new(kind, serde_json::Value::Null);
        result.artifacts = past.artifacts.iter().map(artifact).collect();
        let facade = named.tool.facade().filter(|_| !past.is_error);
        result.revealed_tools = facade.and_then(|facade| facade.reopen(&past.arguments, &conversation.context));
        let call = CompletedCall::new(id, past.name.clone(), past.arguments.clone(), named.tool, result);
        let view = conversation.toolbox.view(conversation.history.until_answer(id));
        let view = view.with_context(&conversation.context).at(past.turn, self.iteration);
        conversation
            .strategy
            .evaluate(&InjectionContext::after(&call, view))
            .add
    }

    fn adopt(&mut self, trigger: &ToolName, name: ToolName, definition: ToolDefinition) {
        let conversation = &mut *self.conversation;
        let reader = &conversation.reader;
        let own = (reader.definition().id == definition.id).then(|| reader.clone());
        let tool = self.offered.remove(&definition.id).or(own);
        let tool = tool.or_else(|| conversation.strategy.restore(&definition.id));
        let is_lost = tool.is_none();
        let tool = tool.unwrap_or_else(|| Arc::new(Lost::new(&definition, trigger)));
        conversation.toolbox.adopt(trigger, name, definition, tool, is_lost);
    }

    /// Lets tools run what came last. What cannot be found anew stays what it is.
    fn rebind(&mut self, names: &[ToolName]) {
        for name in names {
            let ToolLookup::Found(named) = self.conversation.toolbox.look_up(name.as_str()) else {
                continue;
            };
            if let Some(tool) = self.offered.remove(&named.definition.id) {
                self.conversation.toolbox.bind(tool);
            }
        }
    }
}

/// A tool that came in before, and whose code or object is not here any more.
struct Lost {
    definition: ToolDefinition,
    trigger: ToolName,
}

impl Lost {
    fn new(definition: &ToolDefinition, trigger: &ToolName) -> Self {
        Self {
            definition: definition.clone(),
            trigger: trigger.clone(),
        }
    }
}

#[async_trait]
impl Tool for Lost {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, _arguments: Arguments, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        let message = "what this tool acted on is gone: the conversation was resumed without it";
        let error = Error::new(ErrorKind::EntityGone, Phase::Execute, message);
        let hint = format!("call `{}` again, which brought it", self.trigger);
        Err(ToolError::Model(error.with_suggestion(hint)))
    }
}
