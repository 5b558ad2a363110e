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
/// A tool takes the handle from [`ToolContext::background_task`] and returns [`ToolResult::background`]. Later it passes the
/// late result to [`deliver`](BackgroundTask::deliver). Or it passes a future to [`spawn`](BackgroundTask::spawn), which
/// delivers the output of the future and ends with the conversation. The late result enters the history before the next
/// inference. It wakes a conversation that waits. A handle that is dropped without a result delivers an error, so that no
/// caller waits forever.
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
    call: String,
    context: ToolContext,
    sender: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    reviews: LateReviews,
    /// The runtime on which the result is reviewed, whichever thread delivers the result.
    runtime: Option<Handle>,
    is_delivered: bool,
}

impl BackgroundTask {
    /// Returns the context of the call. Its token is cancelled when the conversation ends, not when the run ends.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Delivers the result, after its review by the [interceptors](crate::Interceptor) of the call. If a call with interceptors
    /// started the task outside a Tokio runtime, an error is delivered instead. The result is discarded if the conversation
    /// has ended or the call did not return a pending result.
    pub fn deliver(mut self, result: ToolResult) {
        if self.reviews.is_empty() {
            return self.send(result);
        }
        let Some(runtime) = self.runtime.take() else {
            return self.send(ToolResult::error(
                "the result is withheld, because there is no runtime to check it; the call may have taken effect",
            ));
        };
        let tasks = self.tasks.clone();
        let review = async move {
            let reviewed = self.reviews.run(result, &self.context).await;
            self.send(reviewed);
        };
        lock(&tasks).spawn_on(review, &runtime);
    }

    /// Runs a future as a task of the conversation and delivers its result.
    ///
    /// The task is aborted when the conversation ends. If the future returns an error, a result with the status
    /// [`Error`](crate::ToolStatus::Error) is delivered.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn spawn(self, work: impl Future<Output = Result<ToolResult, ToolError>> + Send + 'static) {
        let tasks = self.tasks.clone();
        lock(&tasks).spawn(async move {
            let result = work
                .await
                .unwrap_or_else(|error| ToolResult::error(error.report().to_string()));
            self.deliver(result);
        });
    }

    fn send(&mut self, result: ToolResult) {
        self.is_delivered = true;
        let late = LateResult {
            call: std::mem::take(&mut self.call),
            result,
        };
        // Sending fails only after the conversation has ended.
        let _ = self.sender.send(late);
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
    pub call: String,
    /// The result.
    pub result: ToolResult,
}

/// The background tasks of one conversation. Dropping this value aborts them.
pub struct BackgroundTasks {
    inbox: mpsc::UnboundedReceiver<LateResult>,
    sender: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    /// The ids of the calls that took a handle, until [`forget`](Self::forget) removes them.
    calls_with_task: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

/// The Tokio tasks of one conversation. If `is_closed` is set, further tasks are dropped.
#[derive(Default)]
struct Tasks {
    running: JoinSet<()>,
    is_closed: bool,
}

impl Tasks {
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        while self.running.try_join_next().is_some() {}
        if !self.is_closed {
            self.running.spawn(work);
        }
    }

    fn spawn_on(&mut self, work: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
        if !self.is_closed {
            self.running.spawn_on(work, runtime);
        }
    }
}

impl BackgroundTasks {
    /// Creates the task list of a conversation. Cancelling the token `conversation` cancels the contexts of the tasks.
    pub fn new(conversation: &CancellationToken) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        Self {
            inbox,
            sender,
            tasks: Arc::default(),
            calls_with_task: Arc::default(),
            cancel: conversation.child_token(),
        }
    }

    /// Returns a copy of a context with which the call with this id can start a background task.
    pub fn offer(&self, call: &str, context: &ToolContext) -> ToolContext {
        // A context inside an agent still carries the reviews of the call that runs the agent. They do not apply to this call.
        let context = context.clone().without_extension::<LateReviews>();
        context.with_extension(TaskOffer {
            call: call.to_owned(),
            sender: self.sender.clone(),
            tasks: self.tasks.clone(),
            calls_with_task: self.calls_with_task.clone(),
            cancel: self.cancel.clone(),
        })
    }

    /// Returns whether a call has started a background task and was not [forgotten](Self::forget).
    pub fn has_task(&self, call: &str) -> bool {
        lock(&self.calls_with_task).contains(call)
    }

    /// Removes a call whose late result was received, or whose result was not pending.
    pub fn forget(&self, call: &str) {
        lock(&self.calls_with_task).remove(call);
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
        let mut tasks = lock(&self.tasks);
        tasks.is_closed = true;
        tasks.running.abort_all();
    }
}

/// The extension of a context with which a call can start a background task.
struct TaskOffer {
    call: String,
    sender: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    calls_with_task: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

impl ToolContext {
    /// Returns a copy that cannot start a background task, for a nested call whose caller waits for the result.
    pub fn without_background_tasks(self) -> Self {
        self.without_extension::<TaskOffer>()
    }

    /// Starts a background task, at most one per call.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation, in a nested call whose caller waits for the result, if the call already
    /// has a background task, or if [`BACKGROUND_TASKS_MAX`] is reached.
    pub fn background_task(&self) -> Result<BackgroundTask, ToolError> {
        let refusal = |message: &str| Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        let Some(offer) = self.extension::<TaskOffer>() else {
            let error = refusal("a background task needs a conversation");
            return Err(ToolError::Model(
                error.with_suggestion("call the tool in a conversation"),
            ));
        };
        let mut calls_with_task = lock(&offer.calls_with_task);
        if calls_with_task.len() >= BACKGROUND_TASKS_MAX {
            let error = refusal("too many background tasks are running");
            return Err(ToolError::Model(
                error.with_suggestion("wait until one of them has finished"),
            ));
        }
        if !calls_with_task.insert(offer.call.clone()) {
            return Err(ToolError::Model(refusal("the call already has a background task")));
        }
        Ok(BackgroundTask {
            call: offer.call.clone(),
            context: self.clone().with_cancel(offer.cancel.clone()),
            sender: offer.sender.clone(),
            tasks: offer.tasks.clone(),
            reviews: LateReviews::of(self),
            runtime: Handle::try_current().ok(),
            is_delivered: false,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
