//! The loop, and what lives as long as a conversation.
//!
//! A [`Conversation`] owns history, tools and live entities. Each [`run`](Conversation::run) asks the model, runs the calls of
//! its answer, lets the injection strategies look at each result, and asks again, until there is an answer or a limit of
//! [`LoopLimits`] is met. [`Observer`]s hear [`Event`]s; a [`Trace`] writes them down.

mod answer;
mod builder;
mod conversation;
mod dispatch;
mod event;
mod failure;
mod folded;
mod gateway;
mod group;
mod history;
mod loop_id;
mod observer;
mod outcome;
mod page;
mod policy;
mod prepare;
mod queued;
mod resume;
mod slot;
mod stop;
mod tally;
mod tool_loop;
mod toolbox;
mod trace;
mod user_turn;

#[cfg(test)]
mod tests;

pub use builder::{ConversationBuilder, RESERVED_NAMES};
pub use conversation::Conversation;
pub use event::{Event, visible_tools};
pub use failure::{RunError, RunFailure};
pub use group::{FixedTools, GroupConfig, GroupsConfig, Permission, ToolGroup, ToolGroups, ToolShelf, ToolSource};
pub use observer::Observer;
pub use outcome::{CallRecord, RunOutcome, RunUsage, StopReason};
pub use policy::{IterationPolicy, LoopLimits, UnknownToolPolicy};
pub use queued::Queued;
pub use trace::{TRACE_VERSION, Trace, TraceEntry};
pub use user_turn::{TypedOutcome, UserTurn};
