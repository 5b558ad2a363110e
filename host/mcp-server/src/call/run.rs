//! Calling a tool of a session.

use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::output::CallOutput;
use std::sync::Arc;

use crate::approval::{InputRound, UserChannel, can_elicit};
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

/// Calls a tool of a session for a request: its cancellation stops the guest, and the tool's progress becomes notifications. A question
/// to the user ends the call if there is a round of input, and is sent to the client otherwise.
pub(crate) async fn call(
    tools: &ToolSession,
    name: &str,
    arguments: Arguments,
    principal: &Principal,
    request: &RequestContext<RoleServer>,
    round: Option<&Arc<InputRound>>,
) -> Called {
    let progress = CallOutput::of(request);
    let context = call_context(principal.context(), &MetaContext(&request.meta))
        .with_cancel(request.ct.child_token())
        .with_output(progress.output());
    let answer = match round {
        _ if !can_elicit(request) => tools.call(name, arguments, &context).await,
        Some(round) => {
            let context = context.with_extension(UserChannel::Round(round.clone()));
            tools.call(name, arguments, &context).await
        }
        None => {
            let (channel, questions) = UserChannel::by_elicitation();
            let context = context.with_extension(channel);
            tokio::select! {
                answer = tools.call(name, arguments, &context) => answer,
                never = questions.answer(request.peer.clone()) => match never {},
            }
        }
    };
    Called {
        answer,
        notes: progress.finish().await,
    }
}
