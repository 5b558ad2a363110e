//! The loop, and what lives as long as a conversation.
//!
//! A [`Conversation`] owns history, tools and live entities. Each [`run`](Conversation::run) asks the model, runs the calls of
//! its answer, lets the injection strategies look at each result, and asks again, until there is an answer or a limit of
//! [`LoopLimits`] is met. [`Observer`]s hear [`Event`]s; a [`Trace`] writes them down.

mod agent_port;
mod agentic;
mod answer;
mod blackboard_tools;
mod builder;
mod communication;
mod conversation;
mod dispatch;
mod event;
mod failure;
mod folded;
mod gateway;
mod group;
mod history;
mod inference;
pub mod injection;
mod late;
mod loop_id;
pub mod model;
mod observer;
mod outcome;
mod page;
mod policy;
mod prepare;
mod process;
mod process_tools;
mod queued;
mod reachable;
mod resume;
mod slot;
mod stop;
mod subagent;
mod tally;
mod tool_loop;
mod toolbox;
mod trace;
mod user_turn;

#[cfg(test)]
mod tests;

pub use agent_port::{Agent, Agents};
pub use agentic::AgenticTool;
pub use blackboard_tools::{BlackboardTools, plain_entry};
pub use builder::{ConversationBuilder, RESERVED_NAMES};
pub use communication::{communicate_tool, progress_tool};
pub use conversation::Conversation;
pub use event::{Event, visible_tools};
pub use failure::{RunError, RunFailure};
pub use group::{
    FixedTools, GroupConfig, GroupPermission, GroupsConfig, SourceTools, ToolGroup, ToolGroups, ToolSource,
};
pub use observer::Observer;
pub use outcome::{CallRecord, RunOutcome, RunUsage, StopReason};
pub use policy::{IterationPolicy, LoopLimits, UnknownToolPolicy};
pub use process::{
    AGENT_DEPTH_MAX, Action, Budget, ModelUse, ModelUseKind, Process, ProcessStatus, Remaining, ToolUse,
};
pub use process_tools::ProcessTools;
pub use queued::Queued;
pub use subagent::{Subagent, SubagentOf};
pub use trace::{TRACE_VERSION, Trace, TraceEntry};
pub use user_turn::{TypedOutcome, UserTurn};
