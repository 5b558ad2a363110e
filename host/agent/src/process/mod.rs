//! Processes. A [`AgentProcess`] is all runs of one conversation together, with their goal, status, actions and budget.
//!
//! Such a process is not a process of the operating system, which can have several conversations. An agent that a tool runs
//! has its own conversation, and so its own process, which is nested in the process of the tool's conversation.

mod account;
mod agent_name;
mod budget;
mod process_handle;
mod record;
mod unique_id;

pub(crate) use account::{Account, FailedAgent};
pub(crate) use agent_name::AgentName;
pub use budget::{Budget, RemainingBudget};
pub(crate) use process_handle::CallId;
pub use process_handle::{AgentProcess, ProcessStatus};
pub use record::{ModelUsage, ModelUsageKind, ProcessAction, ToolUsage};
pub(crate) use unique_id::new_unique_id;
