//! The tasks of all principals.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, DetailedTask, InputResponses,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::task_support::TaskSupport;
use crate::client::TaskSlot;

/// How long a call runs before it becomes a task.
const DIRECT_MAX: Duration = Duration::from_millis(500);

/// Maximum time that a task runs, and how long its result is kept afterwards.
const TASK_TTL: Duration = Duration::from_secs(60 * 60);

/// Maximum number of running tasks of a principal. Further calls are answered directly.
const RUNNING_MAX: usize = 100;

/// Maximum number of tasks that a principal creates within two lifetimes of a task, since so many results are kept.
const KEPT_MAX: usize = 1_000;

/// How often a client should ask for the state of a task, in milliseconds.
const POLL_MS: u64 = 1_000;

/// A call that may become a task.
pub(crate) struct TaskCall {
    pub(crate) answer: Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send>>,
    /// Stops the call.
    pub(crate) stop: CancellationToken,
    /// Receives the task, for the questions of the call.
    pub(crate) slot: TaskSlot,
}

/// The tasks of each principal, by its name. A task id is valid for the principal that received it.
#[derive(Default)]
pub(crate) struct CallTasks {
    principals: Mutex<HashMap<String, PrincipalTasks>>,
}

#[derive(Default)]
struct PrincipalTasks {
    manager: TaskManager,
    created: VecDeque<Instant>,
}

impl CallTasks {
    /// Refuses a call of a tool that needs tasks.
    ///
    /// # Errors
    /// If the client does not declare the extension.
    pub(crate) fn check(support: TaskSupport, client: &ClientCapabilities) -> Result<(), ErrorData> {
        if support == TaskSupport::Required && !client.supports_tasks() {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        Ok(())
    }

    /// Waits for the answer of a call, or returns a task that waits for it.
    ///
    /// # Errors
    /// As the call.
    pub(crate) async fn run(
        &self,
        principal: &str,
        support: TaskSupport,
        mut call: TaskCall,
    ) -> Result<CallToolResponse, ErrorData> {
        if matches!(support, TaskSupport::Never | TaskSupport::WhenLong) {
            tokio::select! {
                answer = &mut call.answer => return answer,
                () = tokio::time::sleep(DIRECT_MAX), if support == TaskSupport::WhenLong => {}
            }
        }
        let Some(manager) = self.reserve(principal) else {
            return call.answer.await;
        };
        let ttl = u64::try_from(TASK_TTL.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new().with_ttl_ms(ttl).with_poll_interval_ms(POLL_MS);
        let task = manager.spawn(options, |task| {
            call.slot.begin(task.clone());
            Box::pin(follow(call, task))
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    /// Returns the manager for a new task, unless the principal has too many.
    fn reserve(&self, principal: &str) -> Option<TaskManager> {
        let mut principals = self.lock();
        let tasks = principals.entry(principal.to_owned()).or_default();
        let now = Instant::now();
        tasks
            .created
            .retain(|created| now.duration_since(*created) < 2 * TASK_TTL);
        if tasks.created.len() >= KEPT_MAX || tasks.manager.running_task_count() >= RUNNING_MAX {
            return None;
        }
        tasks.created.push_back(now);
        Some(tasks.manager.clone())
    }

    /// Returns the state of a task.
    ///
    /// # Errors
    /// If the principal has no such task.
    pub(crate) fn get(&self, principal: &str, id: &str) -> Result<DetailedTask, ErrorData> {
        self.manager(principal).get_task(id)
    }

    /// Passes answers to a task.
    ///
    /// # Errors
    /// If the principal has no such task.
    pub(crate) fn update(&self, principal: &str, id: &str, answers: InputResponses) -> Result<(), ErrorData> {
        self.manager(principal).update_task(id, answers)
    }

    /// Cancels a task: its guest stops.
    ///
    /// # Errors
    /// If the principal has no such task.
    pub(crate) fn cancel(&self, principal: &str, id: &str) -> Result<(), ErrorData> {
        self.manager(principal).cancel_task(id)
    }

    fn manager(&self, principal: &str) -> TaskManager {
        let principals = self.lock();
        principals
            .get(principal)
            .map(|tasks| tasks.manager.clone())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PrincipalTasks>> {
        self.principals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the answer of a call, or for its cancellation. When the task expires, the call is stopped.
async fn follow(mut call: TaskCall, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let _stopped_at_the_end = call.stop.clone().drop_guard();
    let answer = tokio::select! {
        answer = &mut call.answer => answer,
        () = task.cancelled() => {
            call.stop.cancel();
            drop(call.answer.await);
            return Err(TaskExit::Cancelled);
        }
    };
    match answer {
        Ok(CallToolResponse::Complete(result)) => Ok(result),
        Ok(_) => {
            let message = "the call asked the client when it became a task; repeat it";
            Err(TaskExit::Error(ErrorData::internal_error(message, None)))
        }
        Err(error) => Err(TaskExit::Error(error)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call() -> TaskCall {
        TaskCall {
            answer: Box::pin(async { Ok(CallToolResult::success(Vec::new()).into()) }),
            stop: CancellationToken::new(),
            slot: TaskSlot::default(),
        }
    }

    async fn task_id(tasks: &CallTasks, principal: &str) -> Option<String> {
        match tasks.run(principal, TaskSupport::Always, call()).await.unwrap() {
            CallToolResponse::Task(created) => Some(created.task.task_id),
            _ => None,
        }
    }

    #[tokio::test]
    async fn task_belongs_to_its_principal() {
        let tasks = CallTasks::default();
        let id = task_id(&tasks, "ann").await.unwrap();
        assert!(tasks.get("ann", &id).is_ok());
        assert!(tasks.get("bob", &id).is_err());
        assert!(tasks.cancel("bob", &id).is_err());
        assert!(tasks.update("bob", &id, InputResponses::new()).is_err());
    }

    #[tokio::test]
    async fn call_beyond_the_limit_is_answered_directly() {
        let tasks = CallTasks::default();
        for _ in 0..KEPT_MAX {
            assert!(task_id(&tasks, "ann").await.is_some());
            tokio::task::yield_now().await;
        }
        assert!(task_id(&tasks, "ann").await.is_none());
        assert!(
            task_id(&tasks, "bob").await.is_some(),
            "each principal has its own limit"
        );
    }
}
