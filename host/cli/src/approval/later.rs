//! Questions that a later process answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::terminal::unanswered;
use toolwit::ToolContext;
use toolwit::agent::{Event, Observer, RequestedApproval};
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver, Origin};

/// Lets a run wait before a call that needs an approval, until the run is left to a later process.
#[derive(Debug, Default)]
pub(crate) struct LaterAnswers(watch::Sender<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The questions about the conversation's own calls that have no answer.
    questions: Vec<RequestedApproval>,
    /// The number of its calls that run.
    running: usize,
}

impl LaterAnswers {
    /// Waits until calls wait for an answer, and no other one runs. The outcome of a call that runs would be lost. Returns the
    /// questions.
    pub(crate) async fn only_questions(&self) -> Vec<RequestedApproval> {
        let only_questions = |waiting: &Waiting| !waiting.questions.is_empty() && waiting.running == 0;
        let mut waiting = self.0.subscribe();
        match waiting.wait_for(only_questions).await {
            Ok(waiting) => waiting.questions.clone(),
            // The sender is in `self`.
            Err(_) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Approver for LaterAnswers {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        if request.callers.is_empty() {
            std::future::pending().await
        }
        unanswered("it is made by another call, which cannot wait for a later process")
    }
}

impl Observer for LaterAnswers {
    fn observe(&self, event: &Event, origin: &Origin) {
        if origin.parent_call.is_some() {
            return;
        }
        match event {
            Event::ApprovalRequested(question) if question.callers.is_empty() => {
                self.0
                    .send_modify(|waiting| waiting.questions.push((**question).clone()));
            }
            Event::ApprovalDecided(decided) => {
                self.0
                    .send_modify(|waiting| waiting.questions.retain(|question| question.id != decided.id));
            }
            Event::ToolStarted { .. } => self.0.send_modify(|waiting| waiting.running += 1),
            Event::ToolReturned { .. } => {
                self.0
                    .send_modify(|waiting| waiting.running = waiting.running.saturating_sub(1));
            }
            _ => {}
        }
    }
}

/// Answers on the command line to the questions of an earlier process, and the approver of all other questions. Clones share the
/// answers.
#[derive(Clone)]
pub(crate) struct GivenAnswers {
    answers: Arc<Mutex<BTreeMap<String, GivenAnswer>>>,
    others: Option<Arc<dyn Approver>>,
}

impl fmt::Debug for GivenAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenAnswers").finish_non_exhaustive()
    }
}

/// An answer, with the question as the person could read it.
struct GivenAnswer {
    question: RequestedApproval,
    approval: Approval,
}

impl GivenAnswers {
    pub(crate) fn new(others: Option<Arc<dyn Approver>>) -> Self {
        Self {
            answers: Arc::default(),
            others,
        }
    }

    /// Answers a question. It is used once, and only for exactly the call that was asked about.
    pub(crate) fn answer(&self, question: RequestedApproval, approval: Approval) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(question.id.clone(), GivenAnswer { question, approval });
    }

    /// Returns whether a question has an answer that was not used yet.
    pub(crate) fn contains(&self, id: &str) -> bool {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.contains_key(id)
    }

    fn take(&self, id: &str) -> Option<GivenAnswer> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

#[async_trait]
impl Approver for GivenAnswers {
    async fn approve(&self, request: ApprovalRequest, context: &ToolContext) -> ApprovalAnswer {
        let given = self.take(&request.id);
        let has_answer = given.is_some();
        let is_same = |question: &RequestedApproval| {
            question.tool == request.tool
                && question.arguments == request.arguments
                && question.digest == request.digest
                && question.callers == request.callers
        };
        match (given.filter(|given| is_same(&given.question)), &self.others) {
            (Some(given), _) => given.approval.into(),
            (None, Some(others)) => others.approve(request, context).await,
            (None, None) if has_answer => {
                unanswered("the call, its tool or its grant has changed since the question was asked")
            }
            (None, None) => unanswered("it needs an approval, and nobody can give one here"),
        }
    }

    fn is_sequential(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.is_sequential())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
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

    fn question(request: &ApprovalRequest) -> RequestedApproval {
        let question = json!({
            "id": request.id, "name": request.name, "tool": request.tool, "arguments": request.arguments,
            "effect": request.access.effect, "digest": request.digest,
        });
        serde_json::from_value(question).unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_for_exactly_the_call_that_was_asked_about_and_once() {
        let context = ToolContext::new();
        let answers = GivenAnswers::new(None);
        answers.answer(question(&request(5)), Approval::Approved);
        assert_eq!(answers.approve(request(5), &context).await.approval, Approval::Approved);
        let again = answers.approve(request(5), &context).await.approval;
        assert!(matches!(again, Approval::Unanswered { .. }), "{again:?}");
        answers.answer(question(&request(5)), Approval::Approved);
        let changed = answers.approve(request(500), &context).await.approval;
        assert!(
            matches!(&changed, Approval::Unanswered { reason } if reason.contains("changed")),
            "{changed:?}"
        );
        let mut other_code = request(5);
        other_code.digest = "another".to_owned();
        answers.answer(question(&request(5)), Approval::Approved);
        let changed = answers.approve(other_code, &context).await.approval;
        assert!(matches!(changed, Approval::Unanswered { .. }), "{changed:?}");
    }

    #[tokio::test]
    async fn a_run_is_left_when_only_questions_are_open() {
        let later = LaterAnswers::default();
        let observe = |event: Event| later.observe(&event, &Origin::default());
        observe(started());
        observe(Event::ApprovalRequested(Box::new(question(&request(5)))));
        let mut left = Box::pin(later.only_questions());
        tokio::select! {
            biased;
            left = &mut left => panic!("a call runs: {left:?}"),
            () = std::future::ready(()) => {}
        }
        let returned = json!({"event": "tool_returned", "id": "call-0", "outcome": {"text": "done"}});
        observe(serde_json::from_value(returned).unwrap());
        assert_eq!(left.await, [question(&request(5))]);
        let mut nested = request(5);
        nested.callers = vec![ToolId::from_text("shop#order")];
        let refused = later.approve(nested, &ToolContext::new()).await.approval;
        assert!(matches!(refused, Approval::Unanswered { .. }), "{refused:?}");
    }

    fn started() -> Event {
        serde_json::from_value(json!({"event": "tool_started", "id": "call-0", "name": "look", "tool": "bank#look"}))
            .unwrap()
    }
}
