//! Questions whether a call may run, which the approver or another process answers. The methods identify a question by the number
//! of its entry.

use futures::FutureExt;

use super::error::JournalError;
use super::session_journal::Journal;
use toolwit_core::{Approval, ApprovalAnswer, ApprovalBasis, ApprovalRequest, Approver, ToolContext};

impl Journal {
    /// Asks the approver whether a call may run. If the approver does not answer at once, the question is stored, so that another
    /// process can answer it too. The first answer counts. If the store fails, the answer is [`Approval::Unanswered`].
    pub(crate) async fn ask(
        &self,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> (ApprovalAnswer, ApprovalBasis) {
        let Some((question, is_stored)) = self.question_about(&request.id) else {
            // The journal knows the question from the event `ApprovalRequested`, which it receives as an observer. An observer
            // that has panicked receives no more events.
            return (approver.approve(request, context).await, ApprovalBasis::Approver);
        };
        let outcome = if is_stored {
            self.ask_stored_question(question, approver, request, context).await
        } else {
            self.ask_new_question(question, approver, request, context).await
        };
        outcome.unwrap_or_else(|error| {
            tracing::error!(%error, "the session store failed during a question about a call");
            let reason = "the session store failed, so no person can be asked".to_owned();
            (Approval::Unanswered { reason }.into(), ApprovalBasis::Approver)
        })
    }

    /// Returns the stored answer to the open question about a call, which the run has not used yet. Returns `None` if there is no
    /// such question or answer.
    pub(crate) async fn stored_answer(&self, call: &str) -> Result<Option<ApprovalAnswer>, JournalError> {
        match self.question_about(call) {
            Some((question, _)) => self.writer().answer(question).await,
            None => Ok(None),
        }
    }

    /// Asks a question that is not yet stored. Stores the question before it waits for an answer.
    async fn ask_new_question(
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
        self.wait_for_first_answer(question, approval).await
    }

    /// Asks a question that is already stored. Another process may already have answered it.
    async fn ask_stored_question(
        &self,
        question: u64,
        approver: &dyn Approver,
        request: ApprovalRequest,
        context: &ToolContext,
    ) -> Result<(ApprovalAnswer, ApprovalBasis), JournalError> {
        match self.writer().answer(question).await? {
            Some(answer) => Ok((answer, ApprovalBasis::Stored)),
            None => {
                let approval = approver.approve(request, context);
                self.wait_for_first_answer(question, approval).await
            }
        }
    }

    /// Waits for an answer of the approver or of another process. The store decides which answer is the first.
    async fn wait_for_first_answer(
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
