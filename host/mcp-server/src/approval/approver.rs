//! The approver of all calls of a client.

use async_trait::async_trait;

use super::user_channel::UserChannel;
use toolwit::ToolContext;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver};

/// Asks the user of the client that made the outermost call.
pub(crate) struct ClientApprover;

#[async_trait]
impl Approver for ClientApprover {
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer {
        let approval = match context.extension::<UserChannel>() {
            Some(channel) => channel.ask(&request).await,
            None => refused(&request, "this client cannot ask its user"),
        };
        approval.into()
    }
}

/// Refuses a call about which nobody can be asked, and tells how it can be allowed.
pub(super) fn refused(request: &ApprovalRequest, why: &str) -> Approval {
    Approval::Unanswered {
        reason: format!(
            "it needs an approval, and {why}; the operator of the server can allow it with a rule for `{}` in the approval policy",
            request.tool
        ),
    }
}
