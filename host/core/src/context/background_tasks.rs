//! Background tasks: work that continues after the call that started it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::late_reviews::LateReviews;
use crate::limits::BACKGROUND_TASKS_MAX;
use crate::{Error, ErrorKind, Phase, ToolContext, ToolError, ToolResult};

/// A handle with which a call delivers its result later.
///
/// A tool takes the handle from [`ToolContext::background_task`], and returns [`ToolResult::background`] as a pending result.
/// Later, the code of the tool passes the late result to [`deliver`](BackgroundTask::deliver). Alternatively, the tool passes a
/// future to [`spawn`](BackgroundTask::spawn), which delivers the output of the future. The late result enters the history
/// before the next inference, and wakes a waiting conversation. A handle that is dropped without a result delivers an error,
/// so that no caller waits forever.
///
/// ```
/// use serde_json::json;
/// use toolwit_core::{NativeTool, ToolResult};
///
/// let report = NativeTool::new("report", "Makes a report.", json!({"type": "object"}), |_, context| async move {
///     context.background_task()?.spawn(async { Ok(ToolResult::text("The report is at /reports/7.")) });
///     Ok(ToolResult::background("The report is being made."))
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[must_use = "a background task that is dropped delivers an error"]
pub struct BackgroundTask {
    call_id: String,
    context: ToolContext,
    sender: mpsc::UnboundedSender<LateResult>,
    tokio_tasks: Arc<Mutex<TokioTasks>>,
    reviews: LateReviews,
    /// The runtime that runs the reviews, because a thread outside of any runtime may deliver the result.
    runtime: Option<Handle>,
    is_delivered: bool,
}

impl BackgroundTask {
    /// Returns the context of the call. Its token is cancelled when the conversation ends, not when the run ends.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Delivers the result, after the [interceptors](crate::Interceptor) of the call have reviewed it. If the call has
    /// interceptors and took this handle outside a Tokio runtime, an error is delivered instead. The result is discarded if
    /// the conversation has ended, or if the call did not return a pending result.
    pub fn deliver(mut self, result: ToolResult) {
        if self.reviews.is_empty() {
            return self.send(result);
        }
        let Some(runtime) = self.runtime.take() else {
            return self.send(ToolResult::error(
                "the result is withheld, because no Tokio runtime is available for its review; the call may have taken effect",
            ));
        };
        let tokio_tasks = self.tokio_tasks.clone();
        let review = async move {
            let reviewed_result = self.reviews.run(result, &self.context).await;
            self.send(reviewed_result);
        };
        lock(&tokio_tasks).spawn_on(review, &runtime);
    }

    /// Runs a future as a Tokio task and delivers its output as the late result.
    ///
    /// The task is aborted when the conversation ends. If the future returns an error, a result with the status
    /// [`Error`](crate::ToolStatus::Error) is delivered.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn spawn(self, work: impl Future<Output = Result<ToolResult, ToolError>> + Send + 'static) {
        let tokio_tasks = self.tokio_tasks.clone();
        lock(&tokio_tasks).spawn(async move {
            let result = work
                .await
                .unwrap_or_else(|error| ToolResult::error(error.report().to_string()));
            self.deliver(result);
        });
    }

    fn send(&mut self, result: ToolResult) {
        self.is_delivered = true;
        let late_result = LateResult {
            call_id: std::mem::take(&mut self.call_id),
            result,
        };
        // Sending fails only after the conversation has ended.
        let _ = self.sender.send(late_result);
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        if !self.is_delivered {
            self.send(ToolResult::error("the background task ended without a result"));
        }
    }
}

/// A result that a background task delivered.
pub struct LateResult {
    /// The id of the call in the history.
    pub call_id: String,
    /// The result.
    pub result: ToolResult,
}

/// The background tasks of one conversation. Dropping this value aborts them.
pub struct BackgroundTasks {
    inbox: mpsc::UnboundedReceiver<LateResult>,
    sender: mpsc::UnboundedSender<LateResult>,
    tokio_tasks: Arc<Mutex<TokioTasks>>,
    /// The ids of the calls that took a [`BackgroundTask`], until [`forget`](Self::forget) removes them.
    calls_with_task: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

/// The Tokio tasks of one conversation. If `is_closed` is set, further tasks are dropped.
#[derive(Default)]
struct TokioTasks {
    running: JoinSet<()>,
    is_closed: bool,
}

impl TokioTasks {
    fn remove_ended(&mut self) {
        while self.running.try_join_next().is_some() {}
    }

    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.remove_ended();
        if !self.is_closed {
            self.running.spawn(work);
        }
    }

    fn spawn_on(&mut self, work: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
        self.remove_ended();
        if !self.is_closed {
            self.running.spawn_on(work, runtime);
        }
    }
}

impl BackgroundTasks {
    /// Creates the empty task list of a conversation. Cancelling the token of the conversation also cancels the token in the
    /// [context](BackgroundTask::context) of each task.
    pub fn new(conversation_token: &CancellationToken) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        Self {
            inbox,
            sender,
            tokio_tasks: Arc::default(),
            calls_with_task: Arc::default(),
            cancel: conversation_token.child_token(),
        }
    }

    /// Returns a copy of a context, with which the call with this id can start a background task.
    pub fn context_for_call(&self, call_id: &str, context: &ToolContext) -> ToolContext {
        // In an agent that a tool runs, the context still carries the reviews of the outer call. They do not apply to this call.
        let context = context.clone().without_extension::<LateReviews>();
        context.with_extension(TaskStarter {
            call_id: call_id.to_owned(),
            sender: self.sender.clone(),
            tokio_tasks: self.tokio_tasks.clone(),
            calls_with_task: self.calls_with_task.clone(),
            cancel: self.cancel.clone(),
        })
    }

    /// Returns whether a call has started a background task and was not [forgotten](Self::forget).
    pub fn has_task(&self, call_id: &str) -> bool {
        lock(&self.calls_with_task).contains(call_id)
    }

    /// Removes a call whose late result was received, or whose result was not pending.
    pub fn forget(&self, call_id: &str) {
        lock(&self.calls_with_task).remove(call_id);
    }

    /// Returns the next late result without waiting, or `None` if no result has arrived.
    pub fn try_next(&mut self) -> Option<LateResult> {
        self.inbox.try_recv().ok()
    }

    /// Waits for the next late result. The return value is never `None`, because this value holds a sender of its channel.
    pub async fn next(&mut self) -> Option<LateResult> {
        self.inbox.recv().await
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.cancel.cancel();
        let mut tokio_tasks = lock(&self.tokio_tasks);
        tokio_tasks.is_closed = true;
        tokio_tasks.running.abort_all();
    }
}

/// The extension of a [`ToolContext`] with which one call can start a background task.
struct TaskStarter {
    call_id: String,
    sender: mpsc::UnboundedSender<LateResult>,
    tokio_tasks: Arc<Mutex<TokioTasks>>,
    calls_with_task: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

impl ToolContext {
    /// Returns a copy that cannot start a background task, for a nested call whose caller waits for the result.
    pub fn without_background_tasks(self) -> Self {
        self.without_extension::<TaskStarter>()
    }

    /// Returns the handle to a background task of the call. A call can have at most one background task.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation, in a nested call whose caller waits for the result, if the call already
    /// has a background task, or if [`BACKGROUND_TASKS_MAX`] is reached.
    pub fn background_task(&self) -> Result<BackgroundTask, ToolError> {
        let refusal = |message: &str| Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        let Some(starter) = self.extension::<TaskStarter>() else {
            let error = refusal("a background task needs a conversation");
            return Err(ToolError::Model(
                error.with_suggestion("call the tool in a conversation"),
            ));
        };
        let mut calls_with_task = lock(&starter.calls_with_task);
        if calls_with_task.len() >= BACKGROUND_TASKS_MAX {
            let error = refusal("too many background tasks are running");
            return Err(ToolError::Model(
                error.with_suggestion("wait until one of them has finished"),
            ));
        }
        if !calls_with_task.insert(starter.call_id.clone()) {
            return Err(ToolError::Model(refusal("the call already has a background task")));
        }
        Ok(BackgroundTask {
            call_id: starter.call_id.clone(),
            context: self.clone().with_cancel_token(starter.cancel.clone()),
            sender: starter.sender.clone(),
            tokio_tasks: starter.tokio_tasks.clone(),
            reviews: LateReviews::of(self),
            runtime: Handle::try_current().ok(),
            is_delivered: false,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
