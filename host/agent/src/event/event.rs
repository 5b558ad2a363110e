//! The events of a conversation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AttachedPictures, CompactedHistory, InjectionCost, NestedCallEnd, NestedCallStart, RecordedAnswer,
    RecordedApprovalDecision, RecordedApprovalRequest, RecordedOutcome, RecordedQuestion, RecordedStart, Resolution,
};
use crate::injection::EntityBinding;
use crate::model::{FinishReason, TokenUsage};
use crate::outcome::{RunUsage, StopReason};
use toolwit_core::{DeniedAccess, ErrorKind, ProviderBlock, ToolCall, ToolDefinition, ToolId, ToolName};

/// An event of a conversation.
///
/// The events determine which tools the model sees at any moment: see [`visible_tools`](super::visible_tools()).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A trace begins. Only traces have this event. It describes the program that recorded the trace, for a replay.
    TraceStarted {
        /// The name of the model.
        model: String,
        /// The options of the program, each with its values.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, Vec<String>>,
    },
    /// The program stored its settings for the runs from here on, such as the model. Only journals have it: see
    /// [`Journal::store_settings`](crate::Journal::store_settings).
    SettingsStored {
        /// The settings. Only the program that stored them interprets them.
        settings: Box<serde_json::Value>,
    },
    /// A turn began with a user message, or with a late result.
    TurnStarted {
        /// The unique id of the run, which tools find in their context.
        loop_id: String,
        /// The number of the turn in the conversation, from 1.
        turn: u32,
        /// The declared tools, and those that were described with the delivery `gateway`.
        tools: Vec<ToolName>,
        /// The user message; `None` for a turn that answers late results.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The JSON Schema of the answer, if the turn has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer_schema: Option<Box<serde_json::Value>>,
    },
    /// The user attached pictures to the message of the turn that began.
    PicturesAttached(AttachedPictures),
    /// Text was appended to the user message: with the delivery `gateway`, the descriptions of tools that strategies added.
    PromptExtended {
        /// The text.
        text: String,
    },
    /// A run that an earlier process did not finish continues.
    RunResumed {
        /// The unique id of the run.
        loop_id: String,
        /// The ids of the calls that run again.
        again: Vec<String>,
        /// The tools that are declared now and were not declared before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<ToolName>,
        /// The tools that were declared before and are not declared now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<ToolName>,
        /// The tools whose definition, code or grant has changed since their last call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<ToolName>,
    },
    /// An inference begins.
    IterationStarted {
        /// The number of the inference in this run, from 1.
        iteration: u32,
        /// The number of declared tools.
        tools: usize,
        /// The number of entities discovered so far. An entity is a [`ToolProvider`](toolwit_core::ToolProvider).
        providers: usize,
    },
    /// A request is sent to the model: for an inference or a summary of the history. Only conversations with a journal emit it.
    ModelAsked {
        /// The number of the last inference in this run that has begun.
        iteration: u32,
        /// The digest of the request: the messages, and for an inference also the declared tools and the options.
        request: String,
    },
    /// The model responded.
    ModelAnswered {
        /// The number of the inference in this run.
        iteration: u32,
        /// The duration in milliseconds.
        wall_ms: u64,
        /// The reason why the model stopped.
        finish: FinishReason,
        /// The tokens of the inference.
        usage: TokenUsage,
        /// The text, or the model's refusal.
        content: String,
        /// The readable reasoning, if the provider shows it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reasoning: String,
        /// The requested calls, as stored in the history.
        tool_calls: Vec<ToolCall>,
        /// The calls as the model wrote them; empty if the history contains the same calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requested: Vec<ToolCall>,
        /// The parts of the response that the provider requires in later requests.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<ProviderBlock>,
        /// The cost of the tools that were injected since the previous inference.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        injected: Option<InjectionCost>,
    },
    /// The history no longer fitted into the context, and a summary by the model replaced its older messages.
    HistoryCompacted(Box<CompactedHistory>),
    /// The last message of the user was pinned: a summary does not replace it.
    MessagePinned,
    /// The arguments of a call were invalid JSON and were repaired without loss.
    ArgumentsRepaired {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// A call needs an approval. It has not started; other calls continue.
    ApprovalRequested(Box<RecordedApprovalRequest>),
    /// It was decided whether a call may start: by the approver, a stored or remembered answer, or a policy that denies it.
    ApprovalDecided(Box<RecordedApprovalDecision>),
    /// A plugin asks the person who uses the host. Its call waits for the answer.
    QuestionAsked(Box<RecordedQuestion>),
    /// The question of a plugin was answered, or there is no answer.
    QuestionAnswered(Box<RecordedAnswer>),
    /// A tool call starts.
    ToolStarted {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: ToolName,
        /// The id of the tool.
        tool: ToolId,
        /// The data that a continuation after a crash needs. Only conversations with a journal have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<Box<RecordedStart>>,
    },
    /// A tool returned. Its result enters the history later, in the order of the calls: see [`ToolFinished`](Self::ToolFinished).
    /// A resumed run takes the result from here instead of calling the tool again. Only conversations with a journal emit it.
    ToolReturned {
        /// The id of the call.
        id: String,
        /// The outcome.
        outcome: Box<RecordedOutcome>,
    },
    /// A person decided about a call that an earlier process started and did not finish.
    CallResolved {
        /// The id of the call.
        id: String,
        /// The decision.
        resolution: Resolution,
    },
    /// The unanswered calls of the last response were answered with an error, because they will not run.
    OpenCallsAnswered {
        /// The text for the model.
        content: String,
    },
    /// The run ended while the model responded. The history contains the text that the user has seen, with a mark.
    AnswerInterrupted {
        /// The text, without the mark.
        content: String,
    },
    /// A tool ended the run with an answer. The history contains the answer as if the model had given it.
    AnsweredByTool {
        /// The answer.
        content: String,
    },
    /// The result of a tool call entered the history: the call ended, or continues in the background.
    ToolFinished {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: ToolName,
        /// The id of the tool.
        tool: ToolId,
        /// The duration in milliseconds.
        wall_ms: u64,
        /// Whether the call failed.
        is_error: bool,
        /// The kind of error, if known.
        kind: Option<ErrorKind>,
        /// The text for the model.
        content: String,
        /// The types of the result's artifacts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<String>,
        /// Whether the call continues in the background and will deliver a late result.
        #[serde(default, rename = "goes_on")]
        is_background: bool,
    },
    /// The host denied accesses to a plugin during a call. The plugin and the model do not receive this list.
    AccessDenied {
        /// The id of the call.
        id: String,
        /// The accesses, with the grants that would allow them.
        denied: Vec<DeniedAccess>,
    },
    /// A running tool reports its progress to the user.
    Progress {
        /// The id of the model's call.
        id: String,
        /// The text. The text of the next progress event replaces it.
        text: String,
    },
    /// A running tool calls another tool, through `toolwit:plugin/tools` or its context. The model does not see the call.
    NestedCallStarted(Box<NestedCallStart>),
    /// A nested call ended.
    NestedCallFinished(Box<NestedCallEnd>),
    /// The model called a locked tool. The call did not run; the answer is guidance on how to unlock the tool.
    CallGuided {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: ToolName,
        /// The text for the model.
        content: String,
    },
    /// A background call delivered its result.
    LateResult {
        /// The id of the call under which the result is stored in the history.
        id: String,
        /// The id of the call that continued in the background.
        call: String,
        /// The name of the tool.
        name: ToolName,
        /// The id of the tool.
        tool: ToolId,
        /// Whether the call failed.
        is_error: bool,
        /// The text for the model.
        content: String,
        /// The types of the result's artifacts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<String>,
    },
    /// A call was answered with an error without running a tool.
    CallRefused {
        /// The id of the call.
        id: String,
        /// The name that the model called, truncated if it is long.
        name: String,
        /// The kind of error.
        kind: ErrorKind,
        /// The text for the model.
        content: String,
    },
    /// A result was too long for one message and was truncated.
    ResultCut {
        /// The id of the call.
        id: String,
        /// The name under which the full result is stored.
        result: String,
        /// The size of the result, in bytes.
        bytes: usize,
        /// The size of the part that the model read, in bytes.
        shown_bytes: usize,
        /// The full result. Only conversations with a journal have it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        full: String,
    },
    /// Tools were injected.
    ToolsInjected {
        /// The tool whose result injected them; `search_tools` for tools that strategies added at the start of a turn.
        trigger: ToolName,
        /// Their names, in declaration order.
        names: Vec<ToolName>,
        /// Their definitions, in the same order.
        #[serde(default)]
        definitions: Vec<ToolDefinition>,
        /// The size that their definitions add to the prompt, in bytes.
        prompt_bytes: u64,
    },
    /// Tools were rebound to another implementation or object, under the same name.
    ToolsRebound {
        /// The tool whose result caused the change; `search_tools` at the start of a turn.
        trigger: ToolName,
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools were added again with other definitions. The next request declares them, or with `gateway` the result describes them.
    ToolsRedefined {
        /// The tool whose result caused the change; `search_tools` at the start of a turn.
        trigger: ToolName,
        /// Their names.
        names: Vec<ToolName>,
        /// Their new definitions, in the same order.
        definitions: Vec<ToolDefinition>,
    },
    /// The application removed a tool. Only the application can add it again.
    ToolExcluded {
        /// The id of the tool.
        tool: ToolId,
    },
    /// The application added a tool that it had removed.
    ToolAdmitted {
        /// The id of the tool.
        tool: ToolId,
    },
    /// Tools were removed and can no longer be called. They stay declared until the turn ends.
    ToolsRemoved {
        /// The tool whose result removed them; `search_tools` at the start of a turn.
        trigger: ToolName,
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools were evicted: they are no longer declared, because of the limit on declared tools. They can still be called.
    ToolsEvicted {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// Tools were folded: they are no longer declared, because they were not used. They can still be called.
    ToolsFolded {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// A tool was not injected: a strategy withheld it, or the application has removed it.
    ToolWithheld {
        /// The tool whose result was evaluated; `search_tools` at the start of a turn.
        trigger: ToolName,
        /// The name of the tool that was not injected.
        name: String,
        /// The reason.
        reason: String,
    },
    /// Evicted or folded tools are declared again.
    ToolsRestored {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// A result contained an entity, or a group of entities that share their tools.
    EntityDiscovered {
        /// Its type, as the tool names contain it.
        #[serde(rename = "type")]
        kind: String,
        /// Its id; `None` for a group, and for an entity without an id.
        id: Option<String>,
        /// Whether the entity is new, and the instance to which its tools are bound.
        binding: EntityBinding,
        /// The tool names of its methods.
        tools: Vec<ToolName>,
    },
    /// A result contained an object that is not a valid [`ToolProvider`](toolwit_core::ToolProvider).
    ProviderInvalid {
        /// Its type, as the tool names contain it.
        #[serde(rename = "type")]
        kind: String,
        /// The reason.
        reason: String,
    },
    /// The number of declared tools reached the warning threshold.
    #[serde(rename = "tools_many")]
    ManyToolsDeclared {
        /// The number of declared tools.
        count: usize,
    },
    /// An injection strategy panicked during the evaluation of a result, which did not change the tools.
    StrategyFailed {
        /// The tool whose result was evaluated.
        trigger: ToolName,
    },
    /// The run ended.
    Finished {
        /// The reason.
        stop: StopReason,
        /// The number of inferences.
        iterations: u32,
        /// The number of tool calls that ran.
        tool_calls: usize,
        /// The usage of the run, including nested agents.
        usage: RunUsage,
        /// The duration in milliseconds.
        wall_ms: u64,
    },
}
