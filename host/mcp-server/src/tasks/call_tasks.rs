//! The tasks of all principals.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use toolwit::tool::text::json_weight;

/// How long a call runs before it becomes a task.
const DIRECT_MAX: Duration = Duration::from_millis(500);

/// Maximum time that a task runs, and how long its result is kept afterwards.
const TASK_TTL: Duration = Duration::from_secs(60 * 60);

/// Maximum number of running tasks of a principal. Further calls are answered directly.
const RUNNING_MAX: usize = 100;

/// Maximum number of tasks that a principal creates within twice [`TASK_TTL`], the time in which a task runs and its
/// result is kept.
const TASKS_MAX: usize = 1_000;

/// Maximum memory of the results of a principal's tasks, in bytes. If a result would exceed this limit, its task fails.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// The interval at which a client should request the state of a task, in milliseconds.
const POLL_MS: u64 = 1_000;

/// A call that may become a task.
pub(crate) struct TaskCall {
    pub(crate) answer: Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send>>,
    /// Stops the call.
    pub(crate) stop: CancellationToken,
    /// Receives the task, for the questions of the call.
    pub(crate) slot: TaskSlot,
}

/// The tasks of all principals. A task id is valid only for the principal that received it.
pub(crate) struct CallTasks {
    /// The tasks of each principal, by the principal's name.
    principals: Mutex<HashMap<String, PrincipalTasks>>,
    /// Maximum time that a task runs, and how long its result is kept afterwards.
    ttl: Duration,
}

impl Default for CallTasks {
    fn default() -> Self {
        Self {
            principals: Mutex::default(),
            ttl: TASK_TTL,
        }
    }
}

#[derive(Default)]
struct PrincipalTasks {
    manager: TaskManager,
    /// The tasks that run or whose results are kept, the oldest first.
    created: VecDeque<CreatedTask>,
    /// The memory of all results, in bytes.
    bytes: Arc<AtomicUsize>,
}

impl PrincipalTasks {
    /// Removes the tasks whose results have expired.
    fn forget_expired(&mut self, now: Instant, ttl: Duration) {
        self.created.retain(|created| {
            let is_kept = now.duration_since(created.created_at) < 2 * ttl;
            if !is_kept {
                created.bytes.forget();
            }
            is_kept
        });
    }
}

/// A task that runs, or whose result is kept.
struct CreatedTask {
    created_at: Instant,
    /// The memory of the result.
    bytes: ResultBytes,
}

/// The memory of the result of a task, and the sum for all tasks of a principal, in bytes.
#[derive(Clone, Default)]
struct ResultBytes {
    result: Arc<AtomicUsize>,
    sum: Arc<AtomicUsize>,
}

impl ResultBytes {
    fn of(sum: &Arc<AtomicUsize>) -> Self {
        Self {
            result: Arc::default(),
            sum: sum.clone(),
        }
    }

    /// Adds the memory of the result, unless the sum would exceed [`RESULT_BYTES_MAX`]. Returns whether it was added.
    fn keep(&self, bytes: usize) -> bool {
        let add = |sum: usize| Some(sum.saturating_add(bytes)).filter(|sum| *sum <= RESULT_BYTES_MAX);
        let is_kept = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if is_kept {
            self.result.store(bytes, Ordering::Relaxed);
        }
        is_kept
    }

    fn forget(&self) {
        self.sum
            .fetch_sub(self.result.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl CallTasks {
    /// Checks that the client supports tasks, if the tool requires them.
    ///
    /// # Errors
    /// If `support` is [`TaskSupport::Required`] and the client does not declare the extension.
    pub(crate) fn check_support(support: TaskSupport, client: &ClientCapabilities) -> Result<(), ErrorData> {
        if support == TaskSupport::Required && !client.supports_tasks() {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        Ok(())
    }

    /// Runs a call, and returns its answer or the task that it became. If `support` makes every call a task, the task
    /// begins at once. If `support` makes only long calls tasks, the task begins after [`DIRECT_MAX`]. If the principal
    /// has too many tasks, the call is answered directly.
    ///
    /// # Errors
    /// If the call is answered directly and fails with an error of the protocol.
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
        let Some((manager, bytes)) = self.reserve(principal) else {
            return call.answer.await;
        };
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new().with_ttl_ms(ttl).with_poll_interval_ms(POLL_MS);
        let task = manager.spawn(options, |task| {
            call.slot.begin(task.clone());
            Box::pin(await_answer(call, task, bytes))
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    /// Returns the manager for a new task, and the counter for the memory of its result. Returns `None` if the
    /// principal has too many tasks.
    fn reserve(&self, principal: &str) -> Option<(TaskManager, ResultBytes)> {
        let mut principals = self.lock();
        let tasks = principals.entry(principal.to_owned()).or_default();
        let now = Instant::now();
        tasks.forget_expired(now, self.ttl);
        if tasks.created.len() >= TASKS_MAX || tasks.manager.running_task_count() >= RUNNING_MAX {
            return None;
        }
        let bytes = ResultBytes::of(&tasks.bytes);
        tasks.created.push_back(CreatedTask {
            created_at: now,
            bytes: bytes.clone(),
        });
        Some((tasks.manager.clone(), bytes))
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

    /// Cancels a task and stops its call.
    ///
    /// # Errors
    /// If the principal has no such task.
    pub(crate) fn cancel(&self, principal: &str, id: &str) -> Result<(), ErrorData> {
        self.manager(principal).cancel_task(id)
    }

    /// Ends the tasks that have run for too long, even if their clients do not request their state, and removes the
    /// principals without tasks.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.lock().retain(|_, tasks| {
            // Counting the running tasks also ends the tasks that have run for too long.
            let running = tasks.manager.running_task_count();
            tasks.forget_expired(now, self.ttl);
            running > 0 || !tasks.created.is_empty()
        });
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

/// Waits for the answer of a call, or for the cancellation of its task. If this future is dropped because the task
/// expired, the call is stopped.
async fn await_answer(mut call: TaskCall, task: TaskContext, bytes: ResultBytes) -> Result<CallToolResult, TaskExit> {
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
        Ok(CallToolResponse::Complete(result)) if bytes.keep(weight(&result)) => Ok(result),
        Ok(CallToolResponse::Complete(_)) => {
            let message = "the results of your tasks take too much memory; repeat the call when they have expired";
            Err(TaskExit::Error(ErrorData::internal_error(message, None)))
        }
        Ok(_) => {
            let message = "the call asked the client when it became a task; repeat it";
            Err(TaskExit::Error(ErrorData::internal_error(message, None)))
        }
        Err(error) => Err(TaskExit::Error(error)),
    }
}

/// Estimates the memory of a result.
fn weight(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(0, |json| json_weight(&json))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::{ContentBlock, TaskStatus};

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

    // attack: G14
    #[tokio::test]
    async fn task_ends_after_its_time_although_its_client_does_not_ask() {
        let endless = |guest: Arc<()>| TaskCall {
            answer: Box::pin(async move {
                let _guest = guest;
                std::future::pending().await
            }),
            ..call()
        };
        let guest = Arc::new(());
        let tasks = CallTasks::default();
        let running = tasks.run("ann", TaskSupport::Always, endless(guest.clone())).await;
        tasks.expire();
        assert!(matches!(running, Ok(CallToolResponse::Task(_))));
        assert_eq!(
            (tasks.lock().len(), Arc::strong_count(&guest)),
            (1, 2),
            "it has time left"
        );

        let tasks = CallTasks {
            ttl: Duration::ZERO,
            ..CallTasks::default()
        };
        let guest = Arc::new(());
        let running = tasks.run("ann", TaskSupport::Always, endless(guest.clone())).await;
        assert!(matches!(running, Ok(CallToolResponse::Task(_))));
        tasks.expire();
        assert_eq!(tasks.lock().len(), 0, "the principal is forgotten");
        while Arc::strong_count(&guest) > 1 {
            tokio::task::yield_now().await;
        }
    }

    // attack: G14
    #[tokio::test]
    async fn results_of_tasks_are_limited_in_memory() {
        let tasks = CallTasks::default();
        let large = async || {
            let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(20 << 20))]);
            let call = TaskCall {
                answer: Box::pin(async { Ok(result.into()) }),
                ..call()
            };
            let CallToolResponse::Task(created) = tasks.run("ann", TaskSupport::Always, call).await.unwrap() else {
                return None;
            };
            let id = created.task.task_id;
            loop {
                let status = tasks.get("ann", &id).unwrap().status();
                if status != TaskStatus::Working {
                    return Some(status);
                }
                tokio::task::yield_now().await;
            }
        };
        for _ in 0..3 {
            assert_eq!(large().await, Some(TaskStatus::Completed));
        }
        assert_eq!(large().await, Some(TaskStatus::Failed), "60 MiB are kept");
        assert!(task_id(&tasks, "ann").await.is_some(), "small results have room");
    }

    #[tokio::test]
    async fn call_beyond_the_limit_is_answered_directly() {
        let tasks = CallTasks::default();
        for _ in 0..TASKS_MAX {
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
