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
/// A tool takes it from [`ToolContext::background_task`] and returns [`ToolResult::background`]. It delivers the late result from a
/// future that it passes to [`spawn`](BackgroundTask::spawn), which ends with the conversation, or by any other means. The late
/// result becomes a message before the next inference, or wakes the conversation. A handle that is dropped without a result
/// delivers an error, so that no caller waits forever.
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
    inbox: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    reviews: LateReviews,
    /// The runtime on which the result is reviewed, whichever thread delivers the result.
    runtime: Option<Handle>,
    delivered: bool,
}

impl BackgroundTask {
    /// Returns the context of the call, which is cancelled with the conversation instead of the run.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Delivers the result, after its review by the [interceptors](crate::Interceptor) of the call. The result is
    /// discarded if the conversation has ended or the call did not return a pending result.
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
    /// The task is aborted when the conversation ends. An error is delivered as the result of a tool that failed.
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
        self.delivered = true;
        let late = LateResult {
            call: std::mem::take(&mut self.call),
            result,
        };
        // Sending fails only after the conversation has ended.
        let _ = self.inbox.send(late);
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        if !self.delivered {
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

/// The background tasks of one conversation. Dropping it aborts them.
pub struct BackgroundTasks {
    inbox: mpsc::UnboundedReceiver<LateResult>,
    sender: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    /// The calls that have taken a handle and have not delivered a result.
    taken: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

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
    /// Creates the task list of a conversation, which the token cancels.
    pub fn new(conversation: &CancellationToken) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        Self {
            inbox,
            sender,
            tasks: Arc::default(),
            taken: Arc::default(),
            cancel: conversation.child_token(),
        }
    }

    /// Returns the context with which a call can start a background task.
    pub fn offer(&self, call: &str, context: &ToolContext) -> ToolContext {
        // A context inside an agent still carries the reviews of the call that runs the agent.
        let context = context.clone().without_extension::<LateReviews>();
        context.with_extension(Offer {
            call: call.to_owned(),
            inbox: self.sender.clone(),
            tasks: self.tasks.clone(),
            taken: self.taken.clone(),
            cancel: self.cancel.clone(),
        })
    }

    /// Returns whether a call has a background task that has not delivered its result.
    pub fn is_promised(&self, call: &str) -> bool {
        lock(&self.taken).contains(call)
    }

    /// Removes a call that has delivered its result, or whose result was not pending.
    pub fn forget(&self, call: &str) {
        lock(&self.taken).remove(call);
    }

    /// Returns the next late result without waiting.
    pub fn try_next(&mut self) -> Option<LateResult> {
        self.inbox.try_recv().ok()
    }

    /// Waits for the next late result.
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

/// The extension of a context that allows a background task.
struct Offer {
    call: String,
    inbox: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    taken: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

impl ToolContext {
    /// Returns a copy without background tasks, for a nested call whose caller waits for the result.
    pub fn without_background_tasks(self) -> Self {
        self.without_extension::<Offer>()
    }

    /// Starts a background task, at most one per call.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation, if the call already has a background task, or if [`BACKGROUND_TASKS_MAX`] is reached.
    pub fn background_task(&self) -> Result<BackgroundTask, ToolError> {
        let refused = |message: &str| Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        let Some(offer) = self.extension::<Offer>() else {
            let error = refused("a background task needs a conversation");
            return Err(ToolError::Model(
                error.with_suggestion("call the tool in a conversation"),
            ));
        };
        let mut taken = lock(&offer.taken);
        if taken.len() >= BACKGROUND_TASKS_MAX {
            let error = refused("too many background tasks are running");
            return Err(ToolError::Model(
                error.with_suggestion("wait until one of them has finished"),
            ));
        }
        if !taken.insert(offer.call.clone()) {
            return Err(ToolError::Model(refused("the call already has a background task")));
        }
        Ok(BackgroundTask {
            call: offer.call.clone(),
            context: self.clone().with_cancel(offer.cancel.clone()),
            inbox: offer.inbox.clone(),
            tasks: offer.tasks.clone(),
            reviews: LateReviews::of(self),
            runtime: Handle::try_current().ok(),
            delivered: false,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
