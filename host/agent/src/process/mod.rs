//! A process: what a conversation is about, what it has done, and what it may still use.

mod account;
mod budget;
mod record;
mod state;

pub use budget::{Budget, Remaining};
pub use record::{Action, ModelUse, ModelUseKind, ToolUse};
pub use state::{AGENT_DEPTH_MAX, Process, ProcessStatus};

pub(super) use account::Account;
