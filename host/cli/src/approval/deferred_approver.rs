//! An approver that leaves its questions to another process.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::sleep;

use super::terminal::unanswered;
use toolwit::ToolContext;
use toolwit::agent::{Event, Observer, RecordedApprovalRequest};
use toolwit::tool::{ApprovalAnswer, ApprovalRequest, Approver, Origin};

/// An approver that leaves its questions to another process, such as `toolwit approve`, and waits.
///
/// The answer arrives in the journal of the session. The agent loop then drops the future of
/// [`DeferredApprover::approve`], which never completes for a call of the model. If no answer arrives in time, the run can
/// be suspended, so that a later process continues it. A nested call cannot be suspended: it is refused if its question
/// gets no answer in time.
pub(crate) struct DeferredApprover {
    open_calls: watch::Sender<OpenCalls>,
    /// Maximum time for which the process waits for an answer.
    answer_timeout: Duration,
    /// The ids of the model's calls during which a question about a nested call got no answer in time. Further nested
    /// calls that need an approval are refused at once.
    timed_out_calls: Mutex<HashSet<String>>,
    /// Receives each question for which the approver waits, for example to print the question.
    announce: Box<dyn Fn(&RecordedApprovalRequest) + Send + Sync>,
}

/// The model's calls that run or wait for an answer. Nested calls are not included.
#[derive(Debug, Default)]
struct OpenCalls {
    /// The questions that have no decision yet.
    questions: Vec<RecordedApprovalRequest>,
    /// The number of calls that run.
    running_count: usize,
}

impl OpenCalls {
    fn has_only_questions(&self) -> bool {
        !self.questions.is_empty() && self.running_count == 0
    }
}

impl fmt::Debug for DeferredApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredApprover").finish_non_exhaustive()
    }
}

impl DeferredApprover {
    /// Creates an approver that waits for an answer for at most `answer_timeout`. `announce` receives each question
    /// except those that are refused at once.
    pub(crate) fn new(
        answer_timeout: Duration,
        announce: impl Fn(&RecordedApprovalRequest) + Send + Sync + 'static,
    ) -> Self {
        Self {
            open_calls: watch::Sender::default(),
            answer_timeout,
            timed_out_calls: Mutex::default(),
            announce: Box::new(announce),
        }
    }

    /// Waits until at least one question is open and no call runs, for the complete answer timeout. Returns the open
    /// questions. A running call delays the return: the caller of this function suspends the run, and the result of a
    /// running call would be lost.
    pub(crate) async fn wait_until_only_questions(&self) -> Vec<RecordedApprovalRequest> {
        let mut open_calls = self.open_calls.subscribe();
        loop {
            // `wait_for` fails only if the sender was dropped. `self` owns the sender, so this cannot happen.
            if open_calls.wait_for(OpenCalls::has_only_questions).await.is_err() {
                return std::future::pending().await;
            }
            tokio::select! {
                biased;
                _ = open_calls.wait_for(|calls| !calls.has_only_questions()) => {}
                () = self.sleep_for_answer_timeout() => return self.open_calls.borrow().questions.clone(),
            }
        }
    }

    fn timed_out_calls(&self) -> MutexGuard<'_, HashSet<String>> {
        self.timed_out_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_for_answer_timeout(&self) {
        if !self.answer_timeout.is_zero() {
            sleep(self.answer_timeout).await;
        }
    }
}

/// Returns the id of the model's call from the id of a call that this call makes, also indirectly: `a` for `a/2/1`.
fn model_call_id(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

#[async_trait]
impl Approver for DeferredApprover {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        let is_nested = !request.callers.is_empty();
        if is_nested && self.answer_timeout.is_zero() {
            return unanswered(
                "it needs an approval, and a call that another call makes cannot wait for a later process",
            );
        }
        let model_call_id = model_call_id(&request.id).to_owned();
        if is_nested && self.timed_out_calls().contains(&model_call_id) {
            return unanswered(
                "it needs an approval, and an earlier question during the same call got no answer in time",
            );
        }
        let question = RecordedApprovalRequest::from(&request);
        (self.announce)(&question);
        if is_nested {
            self.sleep_for_answer_timeout().await;
            self.timed_out_calls().insert(model_call_id);
            return unanswered("it needs an approval, and no answer came in time");
        }
        self.open_calls.send_modify(|calls| calls.questions.push(question));
        std::future::pending().await
    }
}

impl Observer for DeferredApprover {
    fn observe(&self, event: &Event, origin: &Origin) {
        if origin.parent_call.is_some() {
            return;
        }
        match event {
            Event::ApprovalDecided(decision) => {
                self.open_calls
                    .send_modify(|calls| calls.questions.retain(|question| question.id != decision.id));
            }
            Event::ToolStarted { .. } => self.open_calls.send_modify(|calls| calls.running_count += 1),
            Event::ToolReturned { .. } => {
                self.open_calls
                    .send_modify(|calls| calls.running_count = calls.running_count.saturating_sub(1));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use toolwit::ToolDefinition;
    use toolwit::tool::{Approval, CallAccess, ToolId};

    fn request(amount: u32) -> ApprovalRequest {
        let id = ToolId::from_text("bank#pay");
        let definition = ToolDefinition::new(id, "pay", "Pays.", json!({"type": "object"}));
        let arguments = json!({ "amount": amount }).as_object().unwrap().clone();
        ApprovalRequest::new("call-1", &definition, arguments, CallAccess::default())
    }

    fn deferred_approver(answer_timeout: Duration) -> DeferredApprover {
        DeferredApprover::new(answer_timeout, |_| {})
    }

    #[tokio::test]
    async fn a_running_call_delays_the_return_of_the_open_questions() {
        let approver = deferred_approver(Duration::ZERO);
        let (context, request) = (ToolContext::new(), request(5));
        approver.observe(&tool_started(), &Origin::default());
        let mut pending_answer = approver.approve(request.clone(), &context);
        let mut open_questions = Box::pin(approver.wait_until_only_questions());
        tokio::select! {
            biased;
            answer = &mut pending_answer => panic!("unexpected answer: {answer:?}"),
            open_questions = &mut open_questions => panic!("a call runs: {open_questions:?}"),
            () = std::future::ready(()) => {}
        }
        approver.observe(&tool_returned(), &Origin::default());
        assert_eq!(open_questions.await, [RecordedApprovalRequest::from(&request)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_open_questions_are_returned_after_the_answer_timeout() {
        let (context, minute) = (ToolContext::new(), Duration::from_secs(60));
        let approver = deferred_approver(minute);
        let mut pending_answer = approver.approve(request(5), &context);
        let start = Instant::now();
        tokio::select! {
            answer = &mut pending_answer => panic!("unexpected answer: {answer:?}"),
            open_questions = approver.wait_until_only_questions() => assert_eq!(open_questions.len(), 1),
        }
        assert_eq!(start.elapsed(), minute);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_about_a_nested_call_is_refused_after_the_answer_timeout() {
        let mut nested = request(5);
        nested.callers = vec![ToolId::from_text("shop#order")];
        for (timeout_seconds, reason) in [(0, "cannot wait for a later process"), (60, "no answer came in time")] {
            let start = Instant::now();
            let approver = deferred_approver(Duration::from_secs(timeout_seconds));
            let approval = approver.approve(nested.clone(), &ToolContext::new()).await.approval;
            assert!(
                matches!(&approval, Approval::Unanswered { reason: text } if text.contains(reason)),
                "{approval:?}"
            );
            assert_eq!(start.elapsed(), Duration::from_secs(timeout_seconds));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nested_calls_of_one_call_share_one_answer_timeout() {
        let minute = Duration::from_secs(60);
        let approver = deferred_approver(minute);
        let ask = async |id: &str| {
            let mut nested = request(5);
            id.clone_into(&mut nested.id);
            nested.callers = vec![ToolId::from_text("shop#order")];
            approver.approve(nested, &ToolContext::new()).await.approval
        };
        let start = Instant::now();
        for number in 1..=32 {
            let approval = ask(&format!("call-1/{number}")).await;
            assert!(matches!(approval, Approval::Unanswered { .. }), "{approval:?}");
        }
        assert_eq!(start.elapsed(), minute);
        ask("call-2/1").await;
        assert_eq!(start.elapsed(), 2 * minute, "another call has its own timeout");
    }

    fn tool_returned() -> Event {
        let returned = json!({"event": "tool_returned", "id": "call-0", "outcome": {"text": "done"}});
        serde_json::from_value(returned).unwrap()
    }

    fn tool_started() -> Event {
        serde_json::from_value(json!({"event": "tool_started", "id": "call-0", "name": "look", "tool": "bank#look"}))
            .unwrap()
    }
}
