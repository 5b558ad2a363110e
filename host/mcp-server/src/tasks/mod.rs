//! Tool calls that run as tasks (the extension `io.modelcontextprotocol/tasks`), from protocol revision 2026-07-28.

mod call_tasks;
mod task_support;

pub(crate) use call_tasks::{CallTasks, TaskCall};
pub use task_support::TaskSupport;
