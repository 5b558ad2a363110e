//! Questions about calls, which the approver or another process answers.

use futures::FutureExt;

use super::error::JournalError;
use super::session_journal::Journal;
use toolwit_core::{Approval, ApprovalAnswer, ApprovalBasis, ApprovalRequest, Approver, ToolContext};

impl Journal {
    /// Asks the approver about a call. Unless the approver answers at once, the question is stored, so that another process can
    /// answer it. The first answer counts. If the store fails, the question counts as unanswered.
    pub(crate) async fn ask(
        &self,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> (ApprovalAnswer, ApprovalBasis) {
        let Some((question, is_stored)) = self.question_about(&request.id) else {
            // The journal has no question if it panicked as an observer, because it then receives no events.
            return (approver.approve(request, context).await, ApprovalBasis::Approver);
        };
        let outcome = if is_stored {
            self.ask_again(question, approver, request, context).await
        } else {
            self.ask_first(question, approver, request, context).await
        };
        outcome.unwrap_or_else(|error| {
            tracing::error!(%error, "a question about a call cannot be stored");
            let reason = "the session store failed, so no person can be asked".to_owned();
            (Approval::Unanswered { reason }.into(), ApprovalBasis::Approver)
        })
    }

    /// Asks a question that is not stored yet. Stores the question before it waits for an answer.
    async fn ask_first(
        &self,
        question: u64,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> Result<(ApprovalAnswer, ApprovalBasis), JournalError> {
        let mut approval = approver.approve(request, context);
        if let Some(answer) = (&mut approval).now_or_never() {
            return Ok((answer, ApprovalBasis::Approver));
        }
        self.commit().await?;
        self.first_answer(question, approval).await
    }

    /// Asks a question that is stored already, so that another process may have answered it.
    async fn ask_again(
        &self,
        question: u64,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> Result<(ApprovalAnswer, ApprovalBasis), JournalError> {
        match self.writer().answer(question).await? {
            Some(answer) => Ok((answer, ApprovalBasis::Stored)),
            None => self.first_answer(question, approver.approve(request, context)).await,
        }
    }

    /// Waits for an answer of the approver or of another process. The store decides which answer is the first.
    async fn first_answer(
        &self,
        question: u64,
        approval: impl Future<Output = ApprovalAnswer>,
    ) -> Result<(ApprovalAnswer, ApprovalBasis), JournalError> {
        let answer = tokio::select! {
            biased;
            answer = approval => answer,
            stored = self.writer().wait_for_answer(question) => return Ok((stored?, ApprovalBasis::Stored)),
        };
        if self.writer().store_answer(question, &answer).await? {
            return Ok((answer, ApprovalBasis::Approver));
        }
        let first = self.writer().answer(question).await?;
        Ok((first.unwrap_or(answer), ApprovalBasis::Stored))
    }
}
