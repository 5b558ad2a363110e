//! The loop between a language model and its tools: conversations, tool injection, agents and budgets.
//!
//! A [`Conversation`] owns a history, tools and live entities. Each [`run`](Conversation::run) performs an inference, runs the
//! calls of the response, evaluates the injection strategies after each result, and repeats until the model answers or a limit
//! of [`LoopLimits`] is reached. [`Observer`]s receive the [`Event`]s; a [`Trace`] writes them as JSON.
//!
//! The crate depends on the tool contract of `toolwit-core`, but not on WebAssembly.
//!
//! # Map
//!
//! Each module depends only on modules further down in this table.
//!
//! | module | contents |
//! |---|---|
//! | `agents` | agentic tools, subagents, the [`Agent`] trait |
//! | `session` | [`ToolSession`]: a conversation without a model |
//! | `conversation` | [`Conversation`], its builder, turns, resuming |
//! | `run` | one run: the loop, inference, dispatch of calls, results |
//! | `replay` | [`Replay`]: runs a traced conversation again and compares it with its trace |
//! | `state` | the data of a conversation: history, late results, long results |
//! | `toolbox` | callable and declared tools, eviction, the gateway |
//! | `tools` | native tools: blackboard, process, communication |
//! | `process` | [`AgentProcess`], budgets and usage |
//! | `journal` | [`Journal`], [`JournalStore`]: sessions that are stored and continued |
//! | `event` | [`Event`], [`Observer`], [`Trace`] |
//! | `outcome` | [`RunOutcome`], [`RunError`], stop reasons |
//! | `limits` | [`LoopLimits`] and policies |
//! | `group` | [`ToolGroups`]: tools by role |
//! | [`injection`] | strategies that add, remove and lock tools |
//! | [`model`] | the [`ChatModel`](model::ChatModel) trait and the scripted model |

mod agents;
mod conversation;
mod event;
mod group;
pub mod injection;
mod journal;
mod limits;
mod millis;
pub mod model;
mod outcome;
mod process;
mod replay;
mod run;
mod session;
mod state;
mod toolbox;
mod tools;

#[cfg(test)]
mod tests;

pub use agents::{Agent, AgenticTool, Agents, Subagent, SubagentBuilder};
pub use conversation::{
    AnswerSchema, Conversation, ConversationBuilder, LoopConfig, RESERVED_TOOL_NAMES, Suspension, TypedOutcome,
    UserTurn,
};
pub use event::{
    AttachedPictures, CompactedHistory, Event, InjectionCost, NestedCallEnd, NestedCallStart, Observer, OmittedValue,
    QueuedObserver, RecordedAnswer, RecordedApprovalDecision, RecordedApprovalRequest, RecordedArtifact, RecordedError,
    RecordedOutcome, RecordedPicture, RecordedQuestion, RecordedStart, RecordedUsage, Resolution, TRACE_VERSION, Trace,
    TraceEntry, visible_tools,
};
pub use group::{
    FixedTools, GroupConfig, GroupPermission, GroupsConfig, SourceTools, ToolGroup, ToolGroups, ToolSource,
};
pub use journal::{
    ChildCall, IDEMPOTENCY_KEY, InterruptedRun, Journal, JournalError, JournalStore, JournalWriter, MemoryJournalStore,
    PendingApproval, SessionId, SessionSummary, UnresolvedCall, check_fork,
};
pub use limits::{IterationPolicy, LoopLimits, UnknownToolPolicy};
pub use outcome::{CallRecord, RunError, RunFailure, RunOutcome, RunUsage, StopReason};
pub use process::{
    AgentProcess, Budget, ModelUsage, ModelUsageKind, ProcessAction, ProcessStatus, RemainingBudget, ToolUsage,
};
pub use replay::{
    CallOrigin, Difference, Divergence, RecordedCall, Recording, RecordingError, Replay, ReplayedCall, StartedReplay,
    differences, line_diff,
};
pub use session::{SessionAnswer, SessionTool, ToolSession};
pub use tools::{BlackboardTools, ProcessTools, communicate_tool, progress_tool};
