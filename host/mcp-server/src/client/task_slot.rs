//! The task that a call may become.

use std::sync::{Arc, OnceLock};

use rmcp::task_manager::TaskContext;

/// The task that a call has become, or nothing while the call is not a task. It is stored in the extensions of the
/// request. Clones share the task.
#[derive(Clone, Default)]
pub(crate) struct TaskSlot(Arc<OnceLock<TaskContext>>);

impl TaskSlot {
    /// Sets the task of the call. Further questions to the client are sent as input requests of the task.
    pub(crate) fn set(&self, task: TaskContext) {
        drop(self.0.set(task));
    }

    pub(super) fn task(&self) -> Option<&TaskContext> {
        self.0.get()
    }
}
