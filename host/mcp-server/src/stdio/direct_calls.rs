//! Calls of tools that are answered where they are read.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest, ServerJsonRpcMessage,
};
use rmcp::service::{Peer, RequestContext, Service};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The time that cancelled calls have to end.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Calls of tools that are answered where they are read.
///
/// The protocol library runs each request in a task, and sends its answer in another one. For a short call, waking these
/// tasks takes longer than the call. A call of a session therefore begins where the input is read, if no other request is
/// unanswered. Most calls also end there. One that waits, or computes for longer than the interval of the sandbox's
/// interruptions, continues in a task.
pub(super) struct DirectCalls<H> {
    handler: Arc<H>,
    /// The client, as soon as the connection has begun.
    peer: Arc<OnceLock<Peer<RoleServer>>>,
    running: RunningCalls,
    /// The runtime of the tasks, which may not be the one that reads the input.
    runtime: Handle,
}

/// The calls that did not end at once. Clones share them.
#[derive(Clone)]
pub(super) struct RunningCalls {
    tasks: Arc<Mutex<JoinSet<()>>>,
    /// Cancels the calls at the end of the connection.
    cancel: CancellationToken,
}

impl RunningCalls {
    pub(super) fn new() -> Self {
        Self {
            tasks: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Waits until the calls have ended. Cancels those that still run after `wall_max`; they have [`STOP_MAX`] to end.
    pub(super) async fn finish(&self, wall_max: Duration) {
        let mut tasks = std::mem::take(&mut *self.lock());
        let mut join_all = async || while tasks.join_next().await.is_some() {};
        if timeout(wall_max, join_all()).await.is_err() {
            self.cancel.cancel();
            drop(timeout(STOP_MAX, join_all()).await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: ServerHandler> DirectCalls<H> {
    /// Returns a value for the current runtime.
    pub(super) fn new(handler: Arc<H>, peer: Arc<OnceLock<Peer<RoleServer>>>, running: RunningCalls) -> Self {
        Self {
            handler,
            peer,
            running,
            runtime: Handle::current(),
        }
    }

    /// Returns a token that is cancelled at the end of the connection.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.running.cancel.child_token()
    }

    /// Returns the client if a message is a call of a session, and the connection has begun.
    pub(super) fn peer_of_call(&self, message: &ClientJsonRpcMessage) -> Option<&Peer<RoleServer>> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        // A request with a version of its own belongs to no session. The protocol library serves it with that version.
        let is_call = matches!(&request.request, ClientRequest::CallToolRequest(_))
            && request.request.get_meta().protocol_version().is_none();
        self.peer.get().filter(|_| is_call)
    }

    /// Returns the answer to a request. The token cancels the call.
    pub(super) fn answer(
        &self,
        request: JsonRpcRequest<ClientRequest>,
        peer: Peer<RoleServer>,
        cancel: CancellationToken,
    ) -> impl Future<Output = ServerJsonRpcMessage> + Send + 'static {
        let JsonRpcRequest { id, mut request, .. } = request;
        let mut context = RequestContext::new(id.clone(), peer);
        context.ct = cancel;
        std::mem::swap(&mut context.meta, request.get_meta_mut());
        std::mem::swap(&mut context.extensions, request.extensions_mut());
        let handler = self.handler.clone();
        async move {
            let answer = AssertUnwindSafe(handler.handle_request(request, context));
            match answer.catch_unwind().await {
                Ok(Ok(result)) => ServerJsonRpcMessage::response(result, id),
                Ok(Err(error)) => ServerJsonRpcMessage::error(error, Some(id)),
                Err(_) => {
                    tracing::error!("a request panicked");
                    let error = ErrorData::internal_error("the request failed unexpectedly", None);
                    ServerJsonRpcMessage::error(error, Some(id))
                }
            }
        }
    }

    /// Runs a call until it ends or must wait. If it must wait, it continues in a task.
    pub(super) async fn run(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut call = Box::pin(call);
        let first_poll = poll_fn(|context| {
            // What the call creates, such as timers and tasks, must not depend on the runtime that reads the input.
            let _entered = self.runtime.enter();
            Poll::Ready(call.as_mut().poll(context))
        });
        if first_poll.await.is_pending() {
            let mut tasks = self.running.lock();
            // Calls that have ended are removed.
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(call, &self.runtime);
        }
    }
}
