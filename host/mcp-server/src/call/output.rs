//! The output of a call: progress notifications, and messages to the user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::McpClient;
use crate::wire::Notes;
use toolwit::tool::{LogLevel, Origin, OutputSink};

/// Maximum number of progress messages that wait for a slow client. Further messages are dropped, because each progress
/// message replaces the previous one.
const PROGRESS_WAITING_MAX: usize = 64;

/// Maximum number of messages that one call can send to the user. Further messages are dropped.
const NOTES_MAX: usize = 100;

/// Maximum time in which the remaining progress of a call is sent, before the result is sent.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Receives the output of a tool during a call.
pub(super) struct CallOutput {
    /// The queue of progress messages. `None` if the request has no progress token, or the call has ended.
    progress_queue: Mutex<Option<mpsc::Sender<String>>>,
    /// The messages to the user.
    notes: Mutex<Notes>,
    /// The client whose log receives the log messages of plugins.
    client: McpClient,
}

/// The output of a running call, and the task that sends the progress to the client.
pub(super) struct RunningOutput {
    output: Arc<CallOutput>,
    /// `None` if the request has no progress token.
    progress_task: Option<JoinHandle<()>>,
}

impl CallOutput {
    /// Creates the output of a call. If the request has a progress token, starts the task that sends the progress.
    pub(super) fn start(request: &RequestContext<RoleServer>, client: McpClient) -> RunningOutput {
        let (progress_queue, progress_task) = match request.meta.get_progress_token() {
            Some(token) => {
                let (sender, receiver) = mpsc::channel(PROGRESS_WAITING_MAX);
                (
                    Some(sender),
                    Some(tokio::spawn(send_progress(request.peer.clone(), token, receiver))),
                )
            }
            None => (None, None),
        };
        let output = Arc::new(Self {
            progress_queue: Mutex::new(progress_queue),
            notes: Mutex::default(),
            client,
        });
        RunningOutput { output, progress_task }
    }
}

impl RunningOutput {
    pub(super) fn output(&self) -> Arc<CallOutput> {
        self.output.clone()
    }

    /// Sends the remaining progress, and returns the messages to the user. Further progress is ignored.
    pub(super) async fn finish(self) -> Notes {
        lock(&self.output.progress_queue).take();
        if let Some(mut task) = self.progress_task
            && tokio::time::timeout(FLUSH_MAX, &mut task).await.is_err()
        {
            task.abort();
        }
        std::mem::take(&mut *lock(&self.output.notes))
    }
}

/// Sends progress notifications until the call ends. The value of the progress is the number of the message, because a
/// tool reports only text.
async fn send_progress(peer: Peer<RoleServer>, token: ProgressToken, mut messages: mpsc::Receiver<String>) {
    let mut progress = 0.0;
    while let Some(text) = messages.recv().await {
        progress += 1.0;
        let notification = ProgressNotificationParam::new(token.clone(), progress).with_message(text);
        if peer.notify_progress(notification).await.is_err() {
            return;
        }
    }
}

impl OutputSink for CallOutput {
    fn progress(&self, text: &str) {
        if let Some(queue) = &*lock(&self.progress_queue) {
            // If the queue is full, the message is dropped.
            drop(queue.try_send(text.to_owned()));
        }
    }

    fn communicate(&self, text: &str) {
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX {
            notes.push(text.to_owned());
        }
    }

    fn shows_chunks(&self, _origin: &Origin) -> bool {
        false
    }

    fn accepts_log(&self) -> bool {
        true
    }

    fn log(&self, level: LogLevel, logger: &str, text: &str) {
        self.client.log(level, logger, text.into());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
