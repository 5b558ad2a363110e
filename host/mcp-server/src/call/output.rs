//! The output of a call: progress notifications, and messages to the user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::wire::Notes;
use toolwit::tool::OutputSink;

/// Maximum number of progress messages that wait for a slow client. Further messages are dropped, because a later
/// message replaces them.
const PROGRESS_WAITING_MAX: usize = 64;

/// Maximum number of messages of one call to the user. Further messages are dropped.
const NOTES_MAX: usize = 100;

/// Maximum time to send the remaining progress of a call before its result.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Receives the output of a tool.
pub(super) struct CallOutput {
    progress: Mutex<Option<mpsc::Sender<String>>>,
    notes: Mutex<Notes>,
}

/// The output of a call, and the task that sends its progress to the client.
pub(super) struct ProgressTask {
    output: Arc<CallOutput>,
    task: Option<JoinHandle<()>>,
}

impl CallOutput {
    /// Creates the output of a call. A task sends its progress if the request has a progress token.
    pub(super) fn start(request: &RequestContext<RoleServer>) -> ProgressTask {
        let (progress, task) = match request.meta.get_progress_token() {
            Some(token) => {
                let (sender, receiver) = mpsc::channel(PROGRESS_WAITING_MAX);
                (
                    Some(sender),
                    Some(tokio::spawn(send(request.peer.clone(), token, receiver))),
                )
            }
            None => (None, None),
        };
        let output = Arc::new(Self {
            progress: Mutex::new(progress),
            notes: Mutex::default(),
        });
        ProgressTask { output, task }
    }
}

impl ProgressTask {
    pub(super) fn output(&self) -> Arc<CallOutput> {
        self.output.clone()
    }

    /// Sends the remaining progress, and returns the messages to the user. Further progress is ignored.
    pub(super) async fn finish(self) -> Notes {
        lock(&self.output.progress).take();
        if let Some(mut task) = self.task
            && tokio::time::timeout(FLUSH_MAX, &mut task).await.is_err()
        {
            task.abort();
        }
        std::mem::take(&mut *lock(&self.output.notes))
    }
}

/// Sends progress until the call ends. The progress value is the number of the message, because a tool reports only
/// text.
async fn send(peer: Peer<RoleServer>, token: ProgressToken, mut messages: mpsc::Receiver<String>) {
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
        if let Some(progress) = &*lock(&self.progress) {
            // A full queue means that the client is slow, and a newer message will follow.
            drop(progress.try_send(text.to_owned()));
        }
    }

    fn communicate(&self, text: &str) {
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX {
            notes.push(text.to_owned());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
