//! The task that a call may become.

use std::sync::{Arc, OnceLock};

use rmcp::task_manager::TaskContext;

/// The task of a call, once the call runs in the background. It is an extension of the request; clones share it.
#[derive(Clone, Default)]
pub(crate) struct TaskSlot(Arc<OnceLock<TaskContext>>);

impl TaskSlot {
    /// Sets the task. Later questions to the client are sent as input requests of the task.
    pub(crate) fn begin(&self, task: TaskContext) {
        drop(self.0.set(task));
    }

    pub(super) fn task(&self) -> Option<&TaskContext> {
        self.0.get()
    }
}
