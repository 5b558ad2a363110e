//! Calls without a session, which may become tasks.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::mcp_server::ServerState;
use crate::client::TaskSlot;
use crate::principal::Principal;
use crate::tasks::{CallTasks, TaskCall};

/// Calls a tool without a session. A long call becomes a task, if the client supports tasks.
pub(super) async fn call(
    shared: &Arc<ServerState>,
    principal: &Principal,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let support = shared.stateless().task_support(principal, &request.name);
    let client = context.client_capabilities().unwrap_or_default();
    CallTasks::check_support(support, &client)?;
    if !client.supports_tasks() {
        return shared.stateless().call(principal, request, context).await;
    }
    let (slot, stop, cancelled) = (TaskSlot::default(), CancellationToken::new(), context.ct.clone());
    let mut context = context.clone();
    context.ct = stop.clone();
    context.extensions.insert(slot.clone());
    let (state, owner) = (shared.clone(), principal.clone());
    let answer = Box::pin(async move { state.stateless().call(&owner, request, &context).await });
    let call = TaskCall {
        answer,
        stop: stop.clone(),
        slot,
    };
    let run = shared.tasks().run(principal.name(), support, call);
    tokio::pin!(run);
    tokio::select! {
        answer = &mut run => answer,
        () = cancelled.cancelled() => {
            stop.cancel();
            run.await
        }
    }
}
