//! Calling a tool of a session.

use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::output::CallOutput;
use crate::principal::Principal;
use crate::wire::{MetaContext, Notes, call_context};
use toolwit::agent::{SessionAnswer, ToolSession};
use toolwit::{Arguments, Error};

/// The end of a call.
pub(crate) struct Called {
    /// The answer, or the reason why the call did not run.
    pub(crate) answer: Result<SessionAnswer, Error>,
    /// The messages that the tool sent to the user.
    pub(crate) notes: Notes,
}

/// Calls a tool of a session for a request: its cancellation stops the guest, and the tool's progress becomes notifications.
pub(crate) async fn call(
    tools: &ToolSession,
    name: &str,
    arguments: Arguments,
    principal: &Principal,
    request: &RequestContext<RoleServer>,
) -> Called {
    let progress = CallOutput::of(request);
    let context = call_context(principal.context(), &MetaContext(&request.meta))
        .with_cancel(request.ct.child_token())
        .with_output(progress.output());
    let answer = tools.call(name, arguments, &context).await;
    Called {
        answer,
        notes: progress.finish().await,
    }
}
