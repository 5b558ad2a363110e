//! What happens in a conversation, told as it happens.

use serde::{Deserialize, Serialize};

use super::outcome::{RunUsage, StopReason};
use crate::injection::EntityBinding;
use crate::model::{FinishReason, TokenUsage};
use toolwit_core::ErrorKind;
use toolwit_core::{ToolCall, ToolDefinition, ToolId, ToolName};

/// Something that happened in a conversation.
///
/// The events of a conversation say all that is needed to know, at any moment, which tools the model was shown: see
/// [`visible_tools`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A turn began: a user's message came in, or a late result woke the conversation.
    TurnStarted {
        /// Tells this run from every other; tools find it in their context.
        loop_id: String,
        /// The number of the turn in the conversation, the first one being 1.
        turn: u32,
        /// The tools that the model is shown, in order.
        tools: Vec<ToolName>,
    },
    /// The model is asked.
    IterationStarted {
        /// The number of the inference in this run, the first one being 1.
        iteration: u32,
        /// How many tools the model is shown.
        tools: usize,
        /// How many entities the conversation has met.
        providers: usize,
    },
    /// The model spoke.
    ModelAnswered {
        /// The number of the inference.
        iteration: u32,
        /// How long it took.
        wall_ms: u64,
        /// Why it stopped.
        finish: FinishReason,
        /// What it cost.
        usage: TokenUsage,
        /// What it said.
        content: String,
        /// The calls that it wants, as they stand in the history.
        tool_calls: Vec<ToolCall>,
    },
    /// The text of a call's arguments was no valid JSON and could be mended without loss.
    ArgumentsRepaired {
        /// The call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A tool begins to run.
    ToolStarted {
        /// The call.
        id: String,
        /// The tool's name.
        name: ToolName,
        /// The tool.
        tool: ToolId,
    },
    /// A tool is done.
    ToolFinished {
        /// The call.
        id: String,
        /// The tool's name.
        name: ToolName,
        /// The tool.
        tool: ToolId,
        /// How long it took.
        wall_ms: u64,
        /// Whether it failed.
        is_error: bool,
        /// What went wrong, where it is known.
        kind: Option<ErrorKind>,
        /// What the model reads.
        content: String,
        /// The types of the objects that it handed over.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<String>,
        /// Whether it goes on in the background, and a late result is to come.
        #[serde(default)]
        goes_on: bool,
    },
    /// A tool that runs begins to call another one: a plugin through `toolwit:plugin/tools`, Rust code through its context.
    /// The model does not see it.
    NestedCallStarted {
        /// The model's call inside which it is.
        id: String,
        /// Its number among the calls inside that one, the first being 1.
        number: u32,
        /// The tool that calls.
        caller: ToolId,
        /// The tool that is called, as it was asked for.
        tool: ToolId,
    },
    /// A call that a tool made is done.
    NestedCallFinished {
        /// The model's call inside which it was.
        id: String,
        /// Its number among the calls inside that one.
        number: u32,
        /// The tool that was called.
        tool: ToolId,
        /// How long it took.
        wall_ms: u64,
        /// Whether it failed.
        is_error: bool,
        /// What went wrong, where it is known.
        kind: Option<ErrorKind>,
    },
    /// A tool that is locked was called; the model was told what to do first, and nothing ran.
    CallGuided {
        /// The call.
        id: String,
        /// The tool's name.
        name: ToolName,
        /// What the model reads.
        content: String,
    },
    /// A call that went on in the background brought its result.
    LateResult {
        /// The call under which the result stands in the history.
        id: String,
        /// The call that began it.
        call: String,
        /// The tool's name.
        name: ToolName,
        /// The tool.
        tool: ToolId,
        /// Whether it failed.
        is_error: bool,
        /// What the model reads.
        content: String,
        /// The types of the objects that it handed over.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<String>,
    },
    /// A call was answered without running a tool.
    CallRefused {
        /// The call.
        id: String,
        /// The name that the model called, cut where it is long.
        name: String,
        /// Why.
        kind: ErrorKind,
        /// What the model reads.
        content: String,
    },
    /// A result was longer than the model reads at once.
    ResultCut {
        /// The call.
        id: String,
        /// The name under which it is read on.
        result: String,
        /// How long the result is.
        bytes: usize,
        /// How much of it the model read.
        shown_bytes: usize,
    },
    /// Tools came in.
    ToolsInjected {
        /// The tool whose result brought them.
        trigger: ToolName,
        /// Their names, in the order in which they are declared.
        names: Vec<ToolName>,
        /// What the model is told about them, in the same order.
        #[serde(default)]
        definitions: Vec<ToolDefinition>,
        /// How much longer they make the prompt, in bytes of their definitions.
        prompt_bytes: u64,
    },
    /// Tools run other code from now on, under the same name.
    ToolsRebound {
        /// The tool whose result brought it.
        trigger: ToolName,
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools can no longer be called. They stay declared until the turn ends.
    ToolsRemoved {
        /// The tool whose result took them.
        trigger: ToolName,
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools are no longer declared, to keep within the limit. They can still be called.
    ToolsEvicted {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools are no longer declared, since nothing has used them. They can still be called.
    ToolsFolded {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// A strategy would not bring in a tool.
    ToolWithheld {
        /// The tool whose result was looked at.
        trigger: ToolName,
        /// What was not brought in.
        name: String,
        /// Why.
        reason: String,
    },
    /// Tools that were evicted or folded up are declared again.
    ToolsRestored {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// A result held an entity.
    EntityDiscovered {
        /// Its type, as in tool names.
        #[serde(rename = "type")]
        kind: String,
        /// Its id; none for one that cannot be recognised again.
        id: Option<String>,
        /// Whether it is new, and which instance is bound.
        binding: EntityBinding,
        /// Its methods, under the names that the model calls.
        tools: Vec<ToolName>,
    },
    /// A result held an object that cannot become tools.
    ProviderInvalid {
        /// Its type, as in tool names.
        #[serde(rename = "type")]
        kind: String,
        /// What is wrong with it.
        reason: String,
    },
    /// So many tools are declared that models choose badly among them.
    ToolsMany {
        /// How many.
        count: usize,
    },
    /// An injection strategy broke; its decision about this call is lost.
    StrategyFailed {
        /// The tool whose result it looked at.
        trigger: ToolName,
    },
    /// The run is over.
    Finished {
        /// Why.
        stop: StopReason,
        /// How many inferences it took.
        iterations: u32,
        /// How many tools were run.
        tool_calls: usize,
        /// What it cost.
        usage: RunUsage,
        /// How long it took.
        wall_ms: u64,
    },
}

/// Works out of a conversation's events which tools the model is shown after them, in order.
///
/// Nothing but the events decides: the same log gives the same tools wherever it is read.
#[must_use]
pub fn visible_tools<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<ToolName> {
    let mut visible: Vec<ToolName> = Vec::new();
    for event in events {
        match event {
            Event::TurnStarted { tools, .. } => visible.clone_from(tools),
            Event::ToolsInjected { names, .. } | Event::ToolsRestored { names } => {
                let new: Vec<_> = names.iter().filter(|name| !visible.contains(name)).cloned().collect();
                visible.extend(new);
            }
            Event::ToolsEvicted { names } | Event::ToolsFolded { names } => {
                visible.retain(|name| !names.contains(name))
            }
            _ => {}
        }
    }
    visible
}
