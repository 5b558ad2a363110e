//! Processes: goal, status, history and budget of a conversation.

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
pub use process_handle::{Process, ProcessStatus};
pub use record::{ModelUsage, ModelUsageKind, ProcessAction, ToolUsage};
pub(crate) use unique_id::new_unique_id;
