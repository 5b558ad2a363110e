//! Answers, from the command line or a chat, to the questions that an earlier process left open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::terminal::unanswered;
use toolwit::ToolContext;
use toolwit::agent::{RecordedApprovalRequest, UnresolvedCall};
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver};

/// An approver with answers to questions of an earlier process. The user gives these answers, on the command line or in a
/// chat, before the run asks the questions again. The fallback approver, if there is one, answers all other questions,
/// including questions about calls that have changed. Clones share the answers.
#[derive(Clone)]
pub(crate) struct PreparedAnswers {
    /// The unused answers, by the id of the call.
    answers: Arc<Mutex<BTreeMap<String, PreparedAnswer>>>,
    fallback: Option<Arc<dyn Approver>>,
}

impl fmt::Debug for PreparedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedAnswers").finish_non_exhaustive()
    }
}

/// An answer of the user, with the call that was shown to the user.
enum PreparedAnswer {
    /// The answer to a question.
    Question(Box<RecordedApprovalRequest>, Approval),
    /// The permission to run a call again that began in an earlier process.
    RunAgain(Box<UnresolvedCall>),
}

impl PreparedAnswer {
    /// Returns the approval or denial if the request is about exactly the call that was shown to the user.
    fn approval_for(&self, request: &ApprovalRequest) -> Option<Approval> {
        match self {
            Self::Question(question, approval) => (question.tool == request.tool
                && question.arguments == request.arguments
                && question.digest == request.digest
                && question.callers == request.callers)
                .then(|| approval.clone()),
            Self::RunAgain(call) => (call.tool == request.tool
                && call.arguments == request.arguments
                && call.grant == request.access.grant
                && call.code_digest == request.access.code_digest
                && request.callers.is_empty())
            .then_some(Approval::Approved),
        }
    }
}

impl PreparedAnswers {
    pub(crate) fn new(fallback: Option<Arc<dyn Approver>>) -> Self {
        Self {
            answers: Arc::default(),
            fallback,
        }
    }

    /// Adds the answer to a question. The answer is used once, and only for exactly the call in the question.
    pub(crate) fn add_answer(&self, question: RecordedApprovalRequest, approval: Approval) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(question.id.clone(), PreparedAnswer::Question(question.into(), approval));
    }

    /// Allows a call that began in an earlier process to run again. The permission is used once, and only if the tool,
    /// the arguments, the grant and the code are those of the earlier call.
    pub(crate) fn allow_rerun(&self, call: UnresolvedCall) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(call.id.clone(), PreparedAnswer::RunAgain(call.into()));
    }

    /// Returns whether there is an unused answer about the call with this id.
    pub(crate) fn contains(&self, id: &str) -> bool {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.contains_key(id)
    }

    /// Returns the unused denial of the call with this id, if there is one.
    pub(crate) fn denial_of(&self, id: &str) -> Option<Approval> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get(id) {
            Some(PreparedAnswer::Question(_, denial @ Approval::Denied { .. })) => Some(denial.clone()),
            _ => None,
        }
    }

    fn take(&self, id: &str) -> Option<PreparedAnswer> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

#[async_trait]
impl Approver for PreparedAnswers {
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer {
        let prepared_answer = self.take(&request.id);
        let has_answer = prepared_answer.is_some();
        match (
            prepared_answer.and_then(|answer| answer.approval_for(&request)),
            &self.fallback,
        ) {
            (Some(approval), _) => approval.into(),
            (None, Some(fallback)) => fallback.approve(request, context).await,
            (None, None) if has_answer => {
                unanswered("the call, its tool or its grant has changed since the answer was given")
            }
            (None, None) => unanswered("it needs an approval, and no person can be asked"),
        }
    }

    fn is_sequential(&self) -> bool {
        self.fallback.as_ref().is_some_and(|fallback| fallback.is_sequential())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolwit::ToolDefinition;
    use toolwit::tool::{CallAccess, ToolId};

    fn request(amount: u32) -> ApprovalRequest {
        let id = ToolId::from_text("bank#pay");
        let definition = ToolDefinition::new(id, "pay", "Pays.", json!({"type": "object"}));
        let arguments = json!({ "amount": amount }).as_object().unwrap().clone();
        ApprovalRequest::new("call-1", &definition, arguments, CallAccess::default())
    }

    #[tokio::test]
    async fn an_answer_is_used_once_and_only_for_exactly_the_call_in_the_question() {
        let context = ToolContext::new();
        let answers = PreparedAnswers::new(None);
        answers.add_answer((&request(5)).into(), Approval::Approved);
        assert_eq!(answers.approve(request(5), &context).await.approval, Approval::Approved);
        let again = answers.approve(request(5), &context).await.approval;
        assert!(matches!(again, Approval::Unanswered { .. }), "{again:?}");
        answers.add_answer((&request(5)).into(), Approval::Approved);
        let changed = answers.approve(request(500), &context).await.approval;
        assert!(
            matches!(&changed, Approval::Unanswered { reason } if reason.contains("changed")),
            "{changed:?}"
        );
        let mut request_with_other_digest = request(5);
        request_with_other_digest.digest = "another".to_owned();
        answers.add_answer((&request(5)).into(), Approval::Approved);
        let changed = answers.approve(request_with_other_digest, &context).await.approval;
        assert!(matches!(changed, Approval::Unanswered { .. }), "{changed:?}");
    }

    // attack: M1
    #[tokio::test]
    async fn a_call_runs_again_only_with_the_arguments_grant_and_code_that_it_began_with() {
        let earlier_call = || {
            let call = json!({"id": "call-1", "name": "pay", "tool": "bank#pay", "arguments": {"amount": 5}, "grant": ["write /a"], "code": "1"});
            serde_json::from_value::<UnresolvedCall>(call).unwrap()
        };
        let approval_of = async |amount: u32, grant: &str, code: &str| {
            let answers = PreparedAnswers::new(None);
            answers.allow_rerun(earlier_call());
            let mut request = request(amount);
            request.access.grant = vec![grant.to_owned()];
            request.access.code_digest = Some(code.to_owned());
            answers.approve(request, &ToolContext::new()).await.approval
        };
        assert_eq!(approval_of(5, "write /a", "1").await, Approval::Approved);
        for changed in [
            approval_of(6, "write /a", "1").await,
            approval_of(5, "write /", "1").await,
            approval_of(5, "write /a", "2").await,
        ] {
            assert!(matches!(changed, Approval::Unanswered { .. }), "{changed:?}");
        }
    }
}
