//! The approver that asks the user of an MCP client.

use async_trait::async_trait;

use super::decision::UserDecision;
use super::form::{approval_form, parse_approval};
use crate::client::{InputRound, McpClient};
use rmcp::model::InputRequest;
use toolwit::ToolContext;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver};

/// Asks the user of the MCP client. Also asks about calls that tools make during a call of this client.
pub(crate) struct ClientApprover;

#[async_trait]
impl Approver for ClientApprover {
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer {
        let approval = match McpClient::of(context) {
            Some(client) => ask(&client, &request).await,
            None => unanswered(&request, "this client cannot ask its user"),
        };
        UserDecision::record(context, &approval);
        approval.into()
    }
}

async fn ask(client: &McpClient, request: &ApprovalRequest) -> Approval {
    let Some(form) = approval_form(request) else {
        return unanswered(request, "the question about it is too long to be shown to the user");
    };
    let form = InputRequest::Elicitation(form);
    if !client.has_capability_for(&form) {
        return unanswered(request, "this client cannot ask its user");
    }
    match client.round() {
        Some(round) => ask_in_round(round, request, form),
        None => match client.ask_one(form).await {
            Ok(answer) => parse_approval(&answer),
            Err(reason) => Approval::Unanswered {
                reason: reason.to_owned(),
            },
        },
    }
}

/// Asks the user by ending the call with a question. The client then repeats the call with the answer of the user.
fn ask_in_round(round: &InputRound, request: &ApprovalRequest, form: InputRequest) -> Approval {
    if !request.callers.is_empty() {
        // When the client repeats the call, the calling tools would run a second time.
        return unanswered(request, "the user cannot be asked about a call that another tool makes");
    }
    let call_digest = serde_json::json!([request.tool, request.digest, request.arguments]);
    let call_digest = blake3::hash(call_digest.to_string().as_bytes()).into();
    if round.is_approved(&call_digest) {
        return Approval::Approved;
    }
    match round.take_approval_answer(&call_digest) {
        Some(answer) => {
            let approval = parse_approval(&answer);
            if approval == Approval::Approved {
                round.approve(call_digest);
            }
            approval
        }
        None => {
            round.ask_approval(call_digest, form);
            Approval::Unanswered {
                reason: "the user is asked first".to_owned(),
            }
        }
    }
}

/// Returns the answer for a call about which the user cannot be asked. The reason in the answer contains `why`, and
/// states how the operator can allow the call.
fn unanswered(request: &ApprovalRequest, why: &str) -> Approval {
    Approval::Unanswered {
        reason: format!(
            "it needs an approval, and {why}; the operator of the server can allow it with a rule for `{}` in the approval policy",
            request.tool
        ),
    }
}
