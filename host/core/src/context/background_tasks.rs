//! Work that goes on after the call that began it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Error, ErrorKind, Phase, ToolContext, ToolError, ToolResult};

/// How many calls of a conversation may go on in the background at once. Each holds a task and a promise to the model.
pub const BACKGROUND_TASKS_MAX: usize = 64;

/// A call's promise to bring a result later.
///
/// A tool takes it with [`ToolContext::background_task`], answers with [`ToolResult::background`], and delivers when it is done: from a
/// task that it gives to [`spawn`](BackgroundTask::spawn), which ends with the conversation, or from wherever else it likes. The late
/// result becomes a message before the next inference, or wakes the conversation. A promise that is dropped delivers an error, so
/// that nobody waits for ever.
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
#[must_use = "a promise that is dropped delivers an error"]
pub struct BackgroundTask {
    call: String,
    context: ToolContext,
    inbox: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    delivered: bool,
}

impl BackgroundTask {
    /// Returns the context for what goes on after the call: the call's own, cancelled with the conversation and not with the run.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Delivers the result. To nobody, when the conversation is gone or the call itself was not answered as one that goes on.
    pub fn deliver(mut self, result: ToolResult) {
        self.send(result);
    }

    /// Runs the rest of the work as a task of the conversation, and delivers what comes of it.
    ///
    /// The task ends with the conversation, wherever it is. An error is told to the model.
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
        // An error means that the conversation is gone, and nobody is left to be told.
        let _ = self.inbox.send(late);
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        if !self.delivered {
            self.send(ToolResult::error("the work in the background ended without a result"));
        }
    }
}

/// A result that came after its call was answered.
pub struct LateResult {
    /// The id of the call in the history.
    pub call: String,
    /// What the call resulted in.
    pub result: ToolResult,
}

/// The background work of one conversation. Dropped, it ends all of it.
pub struct BackgroundTasks {
    inbox: mpsc::UnboundedReceiver<LateResult>,
    sender: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    /// The calls whose promise was taken, until it is kept.
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
}

impl BackgroundTasks {
    /// Makes the place for the background work of a conversation that the given token ends.
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

    /// Lets a call go on in the background if it wants to.
    pub fn offer(&self, call: &str, context: &ToolContext) -> ToolContext {
        context.clone().with_extension(Offer {
            call: call.to_owned(),
            inbox: self.sender.clone(),
            tasks: self.tasks.clone(),
            taken: self.taken.clone(),
            cancel: self.cancel.clone(),
        })
    }

    /// Tells whether a call promised a result.
    pub fn is_promised(&self, call: &str) -> bool {
        lock(&self.taken).contains(call)
    }

    /// Forgets a promise: it was kept, or the call did not mean it.
    pub fn forget(&self, call: &str) {
        lock(&self.taken).remove(call);
    }

    /// Takes a result that is there.
    pub fn try_next(&mut self) -> Option<LateResult> {
        self.inbox.try_recv().ok()
    }

    /// Waits for a result.
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

/// What a call finds in its context when it may go on in the background.
struct Offer {
    call: String,
    inbox: mpsc::UnboundedSender<LateResult>,
    tasks: Arc<Mutex<Tasks>>,
    taken: Arc<Mutex<HashSet<String>>>,
    cancel: CancellationToken,
}

impl ToolContext {
    /// Returns a copy in which nothing can be promised: for a call inside another, whose caller waits for the answer.
    pub fn without_background_tasks(self) -> Self {
        self.without_extension::<Offer>()
    }

    /// Promises a result that comes later, once in a call.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation, when the call has promised already, and when too many calls go on.
    pub fn background_task(&self) -> Result<BackgroundTask, ToolError> {
        let refused = |message: &str| Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        let Some(offer) = self.extension::<Offer>() else {
            let error = refused("there is no conversation into which a result could come later");
            return Err(ToolError::Model(
                error.with_suggestion("call the tool in a conversation"),
            ));
        };
        let mut taken = lock(&offer.taken);
        if taken.len() >= BACKGROUND_TASKS_MAX {
            let error = refused("too many calls go on in the background");
            return Err(ToolError::Model(
                error.with_suggestion("wait until one of them is done"),
            ));
        }
        if !taken.insert(offer.call.clone()) {
            return Err(ToolError::Model(refused("the call has already promised a result")));
        }
        Ok(BackgroundTask {
            call: offer.call.clone(),
            context: self.clone().with_cancel(offer.cancel.clone()),
            inbox: offer.inbox.clone(),
            tasks: offer.tasks.clone(),
            delivered: false,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
