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

/// Maximum time that a call with [`TaskSupport::WhenLong`] runs before it becomes a task.
const DIRECT_MAX: Duration = Duration::from_millis(500);

/// Maximum time that a task runs. Its result is kept for the same time after the task has ended.
const TASK_TTL: Duration = Duration::from_secs(60 * 60);

/// Maximum number of running tasks of a principal. The principal's further calls are answered directly.
const RUNNING_MAX: usize = 100;

/// Maximum number of tasks of a principal. A task counts for twice [`TASK_TTL`] after it was created: it may run for
/// [`TASK_TTL`], and its result is kept for as long afterwards.
const TASKS_MAX: usize = 1_000;

/// Maximum memory of the results of a principal's tasks, in bytes. If a result would exceed this limit, its task fails.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// The interval at which a client should request the state of a task, in milliseconds.
const POLL_INTERVAL_MS: u64 = 1_000;

/// A call that may become a task.
pub(crate) struct PotentialTask {
    /// Runs the call and returns its answer.
    pub(crate) answer: Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send>>,
    /// Stops the call.
    pub(crate) stop: CancellationToken,
    /// Receives the task if the call becomes one. The call sends its later questions to the client through this task.
    pub(crate) task_slot: TaskSlot,
}

/// The tasks of all principals. A task id is valid only for the principal that received it.
pub(crate) struct TasksByPrincipal {
    /// The tasks of each principal, by the principal's name.
    principals: Mutex<HashMap<String, PrincipalTasks>>,
    /// Maximum time that a task runs. Its result is kept for the same time after the task has ended.
    ttl: Duration,
}

impl Default for TasksByPrincipal {
    fn default() -> Self {
        Self {
            principals: Mutex::default(),
            ttl: TASK_TTL,
        }
    }
}

/// The tasks of one principal.
#[derive(Default)]
struct PrincipalTasks {
    manager: TaskManager,
    /// The tasks that count towards [`TASKS_MAX`], the oldest first.
    records: VecDeque<TaskRecord>,
    /// The memory of all results, in bytes.
    result_bytes: Arc<AtomicUsize>,
}

impl PrincipalTasks {
    /// Removes the tasks whose results have expired.
    fn remove_expired(&mut self, now: Instant, ttl: Duration) {
        self.records.retain(|record| {
            let is_kept = now.duration_since(record.created_at) < 2 * ttl;
            if !is_kept {
                record.bytes.release();
            }
            is_kept
        });
    }
}

/// A task that runs, or whose result is kept.
struct TaskRecord {
    created_at: Instant,
    bytes: ResultBytes,
}

/// The memory of the result of one task, and of the results of all tasks of its principal, in bytes. Clones share both
/// counters.
#[derive(Clone, Default)]
struct ResultBytes {
    of_task: Arc<AtomicUsize>,
    of_principal: Arc<AtomicUsize>,
}

impl ResultBytes {
    fn new(of_principal: &Arc<AtomicUsize>) -> Self {
        Self {
            of_task: Arc::default(),
            of_principal: of_principal.clone(),
        }
    }

    /// Counts the memory of the result, unless the results of the principal would then exceed [`RESULT_BYTES_MAX`].
    /// Returns whether the memory is counted.
    fn try_reserve(&self, bytes: usize) -> bool {
        let add = |sum: usize| Some(sum.saturating_add(bytes)).filter(|sum| *sum <= RESULT_BYTES_MAX);
        let is_reserved = self
            .of_principal
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_ok();
        if is_reserved {
            self.of_task.store(bytes, Ordering::Relaxed);
        }
        is_reserved
    }

    /// Stops counting the memory of the result.
    fn release(&self) {
        self.of_principal
            .fetch_sub(self.of_task.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl TasksByPrincipal {
    /// Checks that the client supports tasks, if the tool requires tasks.
    ///
    /// # Errors
    /// If `support` is [`TaskSupport::Required`] and the client does not declare the tasks extension.
    pub(crate) fn check_support(support: TaskSupport, client: &ClientCapabilities) -> Result<(), ErrorData> {
        if support == TaskSupport::Required && !client.supports_tasks() {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        Ok(())
    }

    /// Runs a call, and returns its answer or the task that it became. With [`TaskSupport::Always`] and
    /// [`TaskSupport::Required`], the call becomes a task immediately. With [`TaskSupport::WhenLong`], it becomes a task
    /// if it runs for longer than [`DIRECT_MAX`]. If the principal has too many tasks, the call is answered directly.
    ///
    /// # Errors
    /// If the call is answered directly and fails with an error of the protocol.
    pub(crate) async fn run(
        &self,
        principal: &str,
        support: TaskSupport,
        mut call: PotentialTask,
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
        let options = TaskOptions::new()
            .with_ttl_ms(ttl)
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        let task = manager.spawn(options, |task| {
            call.task_slot.set(task.clone());
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
        tasks.remove_expired(now, self.ttl);
        if tasks.records.len() >= TASKS_MAX || tasks.manager.running_task_count() >= RUNNING_MAX {
            return None;
        }
        let bytes = ResultBytes::new(&tasks.result_bytes);
        tasks.records.push_back(TaskRecord {
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

    /// Passes the client's answers to the questions of a task.
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
            // `running_task_count` also ends the tasks that have run for too long.
            let running_count = tasks.manager.running_task_count();
            tasks.remove_expired(now, self.ttl);
            running_count > 0 || !tasks.records.is_empty()
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
async fn await_answer(
    mut call: PotentialTask,
    task: TaskContext,
    bytes: ResultBytes,
) -> Result<CallToolResult, TaskExit> {
    let _stop_on_drop = call.stop.clone().drop_guard();
    let answer = tokio::select! {
        answer = &mut call.answer => answer,
        () = task.cancelled() => {
            call.stop.cancel();
            drop(call.answer.await);
            return Err(TaskExit::Cancelled);
        }
    };
    match answer {
        Ok(CallToolResponse::Complete(result)) if bytes.try_reserve(estimated_bytes(&result)) => Ok(result),
        Ok(CallToolResponse::Complete(_)) => {
            let message = "the results of your tasks take too much memory; repeat the call when they have expired";
            Err(TaskExit::Error(ErrorData::internal_error(message, None)))
        }
        Ok(_) => {
            let message = "the call asked the client a question at the time when it became a task; repeat the call";
            Err(TaskExit::Error(ErrorData::internal_error(message, None)))
        }
        Err(error) => Err(TaskExit::Error(error)),
    }
}

/// Estimates the memory of a result, in bytes.
fn estimated_bytes(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(0, |json| json_weight(&json))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::{ContentBlock, TaskStatus};

    use super::*;

    fn call() -> PotentialTask {
        PotentialTask {
            answer: Box::pin(async { Ok(CallToolResult::success(Vec::new()).into()) }),
            stop: CancellationToken::new(),
            task_slot: TaskSlot::default(),
        }
    }

    /// Runs a call of a principal. Returns the id of its task, or `None` if the call is answered directly.
    async fn task_id(tasks: &TasksByPrincipal, principal: &str) -> Option<String> {
        match tasks.run(principal, TaskSupport::Always, call()).await.unwrap() {
            CallToolResponse::Task(created) => Some(created.task.task_id),
            _ => None,
        }
    }

    #[tokio::test]
    async fn task_is_accessible_to_its_principal_only() {
        let tasks = TasksByPrincipal::default();
        let id = task_id(&tasks, "ann").await.unwrap();
        assert!(tasks.get("ann", &id).is_ok());
        assert!(tasks.get("bob", &id).is_err());
        assert!(tasks.cancel("bob", &id).is_err());
        assert!(tasks.update("bob", &id, InputResponses::new()).is_err());
    }

    // attack: G14
    #[tokio::test]
    async fn task_expires_although_its_client_never_requests_its_state() {
        // The call holds `guest` until it is stopped.
        let endless_call = |guest: Arc<()>| PotentialTask {
            answer: Box::pin(async move {
                let _guest = guest;
                std::future::pending().await
            }),
            ..call()
        };
        let guest = Arc::new(());
        let tasks = TasksByPrincipal::default();
        let running = tasks.run("ann", TaskSupport::Always, endless_call(guest.clone())).await;
        tasks.expire();
        assert!(matches!(running, Ok(CallToolResponse::Task(_))));
        assert_eq!(
            (tasks.lock().len(), Arc::strong_count(&guest)),
            (1, 2),
            "the task has not expired"
        );

        let tasks = TasksByPrincipal {
            ttl: Duration::ZERO,
            ..TasksByPrincipal::default()
        };
        let guest = Arc::new(());
        let running = tasks.run("ann", TaskSupport::Always, endless_call(guest.clone())).await;
        assert!(matches!(running, Ok(CallToolResponse::Task(_))));
        tasks.expire();
        assert_eq!(tasks.lock().len(), 0, "the principal without tasks is removed");
        while Arc::strong_count(&guest) > 1 {
            tokio::task::yield_now().await;
        }
    }

    // attack: G14
    #[tokio::test]
    async fn results_of_tasks_are_limited_in_memory() {
        let tasks = TasksByPrincipal::default();
        let run_large_call = async || {
            let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(20 << 20))]);
            let call = PotentialTask {
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
            assert_eq!(run_large_call().await, Some(TaskStatus::Completed));
        }
        assert_eq!(
            run_large_call().await,
            Some(TaskStatus::Failed),
            "the other results take 60 MiB"
        );
        assert!(task_id(&tasks, "ann").await.is_some(), "a small result still fits");
    }

    #[tokio::test]
    async fn call_beyond_the_limit_is_answered_directly() {
        let tasks = TasksByPrincipal::default();
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
