//! The way to the user of a client during one call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, ServerRequest};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::{mpsc, oneshot};

use super::approver::refused;
use super::form::{decision, form};
use super::input_round::InputRound;
use toolwit::tool::{Approval, ApprovalRequest};

/// Maximum time that a user has to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10 * 60);

/// The way to the user of the client that made a call. It is an extension of the context of the call.
#[derive(Clone)]
pub(crate) enum UserChannel {
    /// The server sends a request during the call.
    Elicitation(mpsc::Sender<Question>),
    /// The call ends, and is repeated with the answer.
    Round(Arc<InputRound>),
}

/// A question to the user.
pub(crate) struct Question {
    form: ElicitRequest,
    answer: oneshot::Sender<Approval>,
}

/// The questions of one call.
pub(crate) struct Questions(mpsc::Receiver<Question>);

/// Returns whether the client of a request can show a form to its user.
pub(crate) fn can_elicit(request: &RequestContext<RoleServer>) -> bool {
    let capabilities = request.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    // Without a mode, a client means forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

impl UserChannel {
    /// Creates a channel by elicitation. [`Questions::answer`] must run as long as the call.
    pub(crate) fn by_elicitation() -> (Self, Questions) {
        let (sender, receiver) = mpsc::channel(1);
        (Self::Elicitation(sender), Questions(receiver))
    }

    pub(super) async fn ask(&self, request: &ApprovalRequest) -> Approval {
        let Some(form) = form(request) else {
            return refused(request, "its arguments are too long to be shown to the user");
        };
        match self {
            Self::Round(round) => round.ask(request, form),
            Self::Elicitation(questions) => {
                let (answer, answered) = oneshot::channel();
                if questions.send(Question { form, answer }).await.is_err() {
                    return refused(request, "the client is gone");
                }
                answered
                    .await
                    .unwrap_or_else(|_| refused(request, "the client did not answer"))
            }
        }
    }
}

impl Questions {
    /// Asks the user, one question at a time. It never returns. It must be polled by the task that handles the request, so that the
    /// questions are sent on the stream of the request.
    pub(crate) async fn answer(mut self, peer: Peer<RoleServer>) -> std::convert::Infallible {
        while let Some(Question { form, mut answer }) = self.0.recv().await {
            let asked = tokio::time::timeout(ANSWER_MAX, peer.send_request(ServerRequest::ElicitRequest(form)));
            let approval = tokio::select! {
                // The call was cancelled.
                () = answer.closed() => continue,
                asked = asked => match asked {
                    Ok(Ok(ClientResult::ElicitResult(result))) => decision(&result),
                    Ok(Ok(_)) => unanswered("the client sent an invalid answer"),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "a client did not ask its user");
                        unanswered("the client did not ask its user")
                    }
                    Err(_) => unanswered("the user did not answer in time"),
                },
            };
            drop(answer.send(approval));
        }
        std::future::pending().await
    }
}

fn unanswered(reason: &str) -> Approval {
    Approval::Unanswered {
        reason: reason.to_owned(),
    }
}
