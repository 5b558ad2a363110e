//! Tool calls without a session, which may become tasks.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::mcp_server::ServerState;
use crate::client::TaskSlot;
use crate::pending::PendingRequest;
use crate::principal::Principal;
use crate::tasks::{PotentialTask, TasksByPrincipal};

/// Calls a tool without a session. A long call becomes a task, if the client supports tasks.
pub(super) async fn call(
    server: &Arc<ServerState>,
    principal: &Principal,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let support = server.stateless().task_support(principal, &request.name);
    let client = context.client_capabilities().unwrap_or_default();
    TasksByPrincipal::check_support(support, &client)?;
    if !client.supports_tasks() {
        return server.stateless().call(principal, request, context).await;
    }
    let (task_slot, stop, request_cancel) = (TaskSlot::default(), CancellationToken::new(), context.ct.clone());
    let mut context = context.clone();
    // A task continues after its request was answered. The token of the request must therefore not stop the task.
    context.ct = stop.clone();
    context.extensions.insert(task_slot.clone());
    PendingRequest::remove_from(&mut context.extensions);
    let (call_server, call_principal) = (server.clone(), principal.clone());
    let answer = Box::pin(async move {
        let stateless = call_server.stateless();
        stateless.call(&call_principal, request, &context).await
    });
    let call = PotentialTask {
        answer,
        stop: stop.clone(),
        task_slot,
    };
    let run = server.tasks().run(principal.name(), support, call);
    tokio::pin!(run);
    tokio::select! {
        answer = &mut run => answer,
        () = request_cancel.cancelled() => {
            stop.cancel();
            run.await
        }
    }
}
