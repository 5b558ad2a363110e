//! Tool calls that run as tasks (the extension `io.modelcontextprotocol/tasks`), from protocol revision 2026-07-28.

mod task_support;
mod tasks_by_principal;

pub use task_support::TaskSupport;
pub(crate) use tasks_by_principal::{PotentialTask, TasksByPrincipal};
