//! Restores the state of a conversation from its events, to resume it in another process or on another branch.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::earlier_state::restore_usage;
use super::unavailable_tool::UnavailableTool;
use crate::event::Event;
use crate::injection::{CompletedCall, InjectionContext, InjectionStrategy, PastCall};
use crate::state::{BackgroundCall, ConversationState};
use crate::toolbox::{CALL_TOOL, gateway_target};
use toolwit_core::{
    Arguments, Artifact, Message, NamedTool, Role, Tool, ToolCall, ToolDefinition, ToolId, ToolLookup, ToolName,
    ToolResult, parse_arguments, tool_identities,
};

/// Restores the state of a conversation from its events: tools, completed calls, background calls, long results and usage.
///
/// Only the events determine the visible tools, their names and their order. To restore the implementations of the tools,
/// facades are opened and strategies are evaluated again. A tool that cannot be restored, such as a method of an object in
/// another process, becomes an [`UnavailableTool`].
pub(super) fn restore_from_events(conversation: &mut ConversationState, events: Vec<Event>) {
    restore_usage(conversation, &events);
    let mut restoration = Restoration {
        calls: HashMap::new(),
        edited_arguments: HashMap::new(),
        background_calls: Vec::new(),
        injectable_tools: HashMap::new(),
        answer_positions: answer_positions(conversation.history.messages()),
        last_answered_tool: None,
        iteration: 0,
        conversation,
    };
    for event in events {
        restoration.apply(event);
    }
    restoration.fail_background_calls();
}

/// A conversation during its restoration, with the data from the events that were applied.
struct Restoration<'c> {
    conversation: &'c mut ConversationState,
    /// The calls that the model requested, by id.
    calls: HashMap<String, ToolCall>,
    /// The arguments that an approval changed, by the ids of the calls.
    edited_arguments: HashMap<String, Arguments>,
    /// The background calls without a late result: the id of each call, and the name and the id of its tool.
    background_calls: Vec<(String, ToolName, ToolId)>,
    /// The tools that the strategies inject after the last answered call.
    injectable_tools: HashMap<ToolId, Arc<dyn Tool>>,
    /// The positions of the answers in the history, by the ids of the calls.
    answer_positions: HashMap<String, usize>,
    /// The tool of the last answered call.
    last_answered_tool: Option<ToolName>,
    /// The number of the last inference.
    iteration: u32,
}

impl Restoration<'_> {
    fn apply(&mut self, event: Event) {
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
            Event::ApprovalDecided(decision) => {
                let decision = *decision;
                self.set_edited_arguments(decision.id, decision.arguments);
            }
            Event::ToolStarted { id, name, start, .. } => {
                toolbox.touch(&name);
                if let Some(start) = start {
                    let edited = start.is_edited.then_some(start.arguments);
                    self.set_edited_arguments(id, edited);
                }
            }
            // The result of a background call follows as a `LateResult`.
            Event::ToolFinished {
                is_background: true,
                id,
                name,
                tool,
                ..
            } => self.begin_background_call(id, name, tool),
            Event::ToolFinished {
                id,
                name,
                tool,
                is_error,
                content,
                artifacts,
                ..
            } => {
                let past_call = self.past_call(&id, (name, tool), is_error, artifacts);
                self.record_answer(&id, past_call, content);
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
                self.background_calls.retain(|(id, ..)| *id != call);
                let past_call = self.past_call(&call, (name, tool), is_error, artifacts);
                self.record_answer(&id, past_call, content);
            }
            Event::ResultCut { full, .. } if !full.is_empty() => drop(self.conversation.long_results.store(&full)),
            other => self.apply_tool_change(other),
        }
    }

    /// Applies an event about the tools.
    fn apply_tool_change(&mut self, event: Event) {
        let toolbox = &mut self.conversation.toolbox;
        match event {
            Event::ToolsInjected {
                trigger,
                definitions,
                names,
                ..
            } => {
                for (name, definition) in names.into_iter().zip(definitions) {
                    self.restore_injected_tool(&trigger, name, definition);
                }
            }
            Event::ToolsRebound { names, .. } => self.rebind(&names),
            event @ Event::ToolsRedefined { .. } => self.redefine(event),
            Event::EntityDiscovered { tools, .. } => self.inherit_guards(&tools),
            Event::ToolExcluded { tool } => drop(toolbox.exclude(&tool)),
            Event::ToolAdmitted { tool } => toolbox.admit_id(&tool),
            Event::ToolsRemoved { names, .. } => toolbox.remove_named(&names),
            Event::ToolsEvicted { names } | Event::ToolsFolded { names } => toolbox.hide(&names),
            Event::ToolsRestored { names } => drop(toolbox.restore(&names)),
            _ => {}
        }
    }

    fn begin_background_call(&mut self, id: String, name: ToolName, tool: ToolId) {
        self.last_answered_tool = Some(name.clone());
        self.background_calls.push((id, name, tool));
    }

    /// Adds an error as the late result of each background call that has none. The next request to the model contains the errors.
    fn fail_background_calls(&mut self) {
        for (id, name, tool) in std::mem::take(&mut self.background_calls) {
            let call = self.calls.get(&id).cloned().unwrap_or_else(|| ToolCall {
                id: id.clone(),
                name: name.to_string(),
                arguments: "{}".to_owned(),
            });
            let arguments = self.arguments(&id);
            let tool = match self.conversation.toolbox.look_up(name.as_str()) {
                ToolLookup::Found(named) => named,
                _ => unavailable_tool(name, tool),
            };
            self.conversation.late_results.fail(BackgroundCall {
                call,
                arguments,
                tool,
                caller: None,
            });
        }
    }

    /// Returns a call of the current turn as an entry of the call log. `id` is the id under which the model requested the call.
    fn past_call(&self, id: &str, tool: (ToolName, ToolId), is_error: bool, artifacts: Vec<String>) -> PastCall {
        PastCall {
            arguments: self.arguments(id),
            is_error,
            artifacts,
            ..PastCall::new(self.conversation.turns, tool.0, tool.1)
        }
    }

    /// Stores the arguments with which a call runs instead of those of the model. `None` if the call runs with those of the model.
    fn set_edited_arguments(&mut self, id: String, edited: Option<Arguments>) {
        match edited {
            Some(arguments) => drop(self.edited_arguments.insert(id, arguments)),
            None => drop(self.edited_arguments.remove(&id)),
        }
    }

    /// Returns the arguments with which a call ran: the edited ones, or those of the model. For a call of [`CALL_TOOL`], returns the
    /// arguments for the target tool.
    fn arguments(&self, id: &str) -> Arguments {
        if let Some(edited) = self.edited_arguments.get(id) {
            return edited.clone();
        }
        let Some(call) = self.calls.get(id) else {
            return Arguments::new();
        };
        let arguments = parse_arguments(&call.arguments).map(|parsed| parsed.arguments);
        let arguments = arguments.unwrap_or_default();
        match gateway_target(&arguments) {
            Ok((_, target_arguments)) if call.name == CALL_TOOL => target_arguments,
            _ => arguments,
        }
    }

    /// Evaluates the strategies after a call, and adds the call to the call log.
    fn record_answer(&mut self, id: &str, mut past_call: PastCall, content: String) {
        self.injectable_tools.clear();
        self.last_answered_tool = Some(past_call.name.clone());
        if let ToolLookup::Found(named) = self.conversation.toolbox.look_up(past_call.name.as_str()) {
            past_call.identities = tool_identities(&named.tool);
            past_call.has_revealed_tools = named.tool.facade().is_some() && !past_call.is_error;
            let evaluated = catch_unwind(AssertUnwindSafe(|| self.evaluate(id, &past_call, named, content)));
            match evaluated {
                Ok(tools) => {
                    let tools = tools.into_iter().map(|tool| (tool.definition().id.clone(), tool));
                    self.injectable_tools.extend(tools);
                }
                Err(_) => {
                    tracing::error!(tool = %past_call.name, "a strategy or a facade panicked; its tools are missing")
                }
            }
        }
        self.conversation.toolbox.record_call(past_call);
    }

    /// Returns the tools that the strategies inject after a call.
    fn evaluate(&self, id: &str, past_call: &PastCall, named: NamedTool, content: String) -> Vec<Arc<dyn Tool>> {
        let conversation = &*self.conversation;
        let mut result = if past_call.is_error {
            ToolResult::error(content)
        } else {
            ToolResult::text(content)
        };
        let artifact = |kind: &String| Artifact::new(kind, serde_json::Value::Null);
        result.artifacts = past_call.artifacts.iter().map(artifact).collect();
        let facade = named.tool.facade().filter(|_| !past_call.is_error);
        let context = conversation
            .context
            .clone()
            .with_extension(conversation.process.clone());
        result.revealed_tools = facade.and_then(|facade| facade.reopen(&past_call.arguments, &context));
        let call = CompletedCall::new(
            id,
            past_call.name.clone(),
            past_call.arguments.clone(),
            named.tool,
            result,
        );
        let history = conversation.history.messages();
        let history_until_answer = self
            .answer_positions
            .get(id)
            .map_or(history, |&position| &history[..=position]);
        let view = conversation.toolbox.view(history_until_answer);
        let view = view
            .with_context(&context)
            .with_position(past_call.turn, self.iteration);
        conversation
            .strategy
            .evaluate(&InjectionContext::after(&call, view))
            .add
    }

    /// Adds a tool that was injected before the resume, or an [`UnavailableTool`] in its place.
    fn restore_injected_tool(&mut self, trigger: &ToolName, name: ToolName, definition: ToolDefinition) {
        let conversation = &mut *self.conversation;
        let read_result = &conversation.read_result_tool;
        let host_tool = (read_result.definition().id == definition.id).then(|| read_result.clone());
        let tool = self.injectable_tools.remove(&definition.id).or(host_tool);
        let tool = tool.or_else(|| conversation.strategy.restore(&definition.id));
        let is_lost = tool.is_none();
        let tool = tool.unwrap_or_else(|| Arc::new(UnavailableTool::new(&definition, trigger)));
        conversation.toolbox.restore_injected(trigger, name, tool, is_lost);
    }

    /// Declares the new definitions of tools without an implementation. The other tools keep the definition of their
    /// implementation.
    fn redefine(&mut self, event: Event) {
        let Event::ToolsRedefined {
            trigger, definitions, ..
        } = event
        else {
            return;
        };
        let toolbox = &mut self.conversation.toolbox;
        for definition in definitions {
            if toolbox.entities().is_lost(&definition.id) {
                toolbox.replace(Arc::new(UnavailableTool::new(&definition, &trigger)));
            }
        }
    }

    /// Applies the guards of the tool that returned an entity to the methods of the entity.
    fn inherit_guards(&mut self, methods: &[ToolName]) {
        let toolbox = &mut self.conversation.toolbox;
        let Some(returning_tool) = &self.last_answered_tool else {
            return;
        };
        let guards = toolbox.guards(returning_tool);
        let ids = methods.iter().filter_map(|name| match toolbox.look_up(name.as_str()) {
            ToolLookup::Found(named) => Some(named.definition.id.clone()),
            ToolLookup::Removed(_) | ToolLookup::Unknown(_) => None,
        });
        let ids: Vec<_> = ids.collect();
        toolbox.attach_guards(&guards, &ids);
    }

    /// Rebinds tools to the implementations that the strategies inject after the last answered call. A tool that the strategies do
    /// not inject is unchanged.
    fn rebind(&mut self, names: &[ToolName]) {
        for name in names {
            let ToolLookup::Found(named) = self.conversation.toolbox.look_up(name.as_str()) else {
                continue;
            };
            if let Some(tool) = self.injectable_tools.remove(&named.definition.id) {
                self.conversation.toolbox.rebind(tool);
            }
        }
    }
}

/// Returns the positions of the answers in a history, by the ids of the calls.
fn answer_positions(history: &[Message]) -> HashMap<String, usize> {
    let messages = history.iter().enumerate();
    let answers = messages.filter_map(|(position, message)| match &message.role {
        Role::Tool { tool_call_id, .. } => Some((tool_call_id.clone(), position)),
        _ => None,
    });
    answers.collect()
}

/// Returns a stand-in for a tool that no longer exists and that a background call used.
fn unavailable_tool(name: ToolName, id: ToolId) -> NamedTool {
    let definition = ToolDefinition::new(id, name.as_str(), "", serde_json::json!({"type": "object"}));
    NamedTool {
        tool: Arc::new(UnavailableTool::new(&definition, &name)),
        definition: Arc::new(definition),
        name,
    }
}
