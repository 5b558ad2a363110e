//! Tool calls that begin in the task that reads the input.

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

/// Maximum time that cancelled calls have to end.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Runs tool calls that begin in the task that reads the input.
///
/// The protocol library (`rmcp`) runs each request in a task, and sends its answer in another task. For a short call,
/// waking these tasks takes longer than the call. A call of a session therefore begins in the task that reads the input,
/// if no other request is unanswered. Most calls also end there. A call that must wait continues in a task of its own.
///
/// A long computation does not block the input either: the sandbox interrupts a guest that computes at regular intervals,
/// and the guest yields. At the first of these yields, the call continues in a task of its own.
pub(super) struct DirectCalls<H> {
    handler: Arc<H>,
    /// The client. It is set when the connection has begun.
    peer: Arc<OnceLock<Peer<RoleServer>>>,
    running: RunningCalls,
    /// The runtime on which the tasks run. Another runtime may read the input.
    runtime: Handle,
}

/// The direct calls that continue in their own tasks. Clones share the tasks.
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

    /// Waits until the calls have ended. Cancels the calls that still run after `wall_max`, and gives them [`STOP_MAX`]
    /// to end.
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
    /// Creates the direct calls of a connection. Their tasks run on the current runtime.
    pub(super) fn new(handler: Arc<H>, peer: Arc<OnceLock<Peer<RoleServer>>>, running: RunningCalls) -> Self {
        Self {
            handler,
            peer,
            running,
            runtime: Handle::current(),
        }
    }

    /// Returns a new token for a call. The token is also cancelled when [`RunningCalls::finish`] cancels the calls.
    pub(super) fn cancel_token(&self) -> CancellationToken {
        self.running.cancel.child_token()
    }

    /// Returns the client if a message is a tool call of a session, and the connection has begun. Returns `None` for other
    /// messages.
    pub(super) fn peer_of_call(&self, message: &ClientJsonRpcMessage) -> Option<&Peer<RoleServer>> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        // A request that declares its protocol version does not belong to a session. The protocol library serves it.
        let is_call = matches!(&request.request, ClientRequest::CallToolRequest(_))
            && request.request.get_meta().protocol_version().is_none();
        self.peer.get().filter(|_| is_call)
    }

    /// Returns a future that runs a request and returns its answer. The token cancels the call.
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

    /// Runs a call until it ends, waits or yields. A call that waits or yields continues in a task.
    pub(super) async fn run(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut call = Box::pin(call);
        let first_poll = poll_fn(|context| {
            // Timers and tasks that the call creates must not depend on the runtime that reads the input.
            let _entered = self.runtime.enter();
            Poll::Ready(call.as_mut().poll(context))
        });
        if first_poll.await.is_pending() {
            let mut tasks = self.running.lock();
            // Remove the calls that have ended.
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(call, &self.runtime);
        }
    }
}
