//! Processes: goal, status, history and budget of a conversation.

mod account;
mod agent_name;
mod budget;
mod process_handle;
mod record;
mod run_id;

pub(crate) use account::{Account, FailedAgent};
pub(crate) use agent_name::AgentName;
pub use budget::{Budget, RemainingBudget};
pub(crate) use process_handle::CallId;
pub use process_handle::{Process, ProcessStatus};
pub use record::{ModelUsage, ModelUsageKind, ProcessAction, ToolUsage};
pub(crate) use run_id::new_run_id;
