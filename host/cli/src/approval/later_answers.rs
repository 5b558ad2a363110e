//! An approver whose answers come later, from another process.

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

/// An approver for questions that another process answers. The journal delivers such an answer and ends the wait of
/// this approver. If no answer arrives in time, the run can be suspended, so that a later process continues it.
pub(crate) struct LaterAnswers {
    open_calls: watch::Sender<OpenCalls>,
    /// The time for which the process waits for an answer.
    answer_timeout: Duration,
    /// The ids of those of the conversation's own calls that made a nested call without an answer in time. Their
    /// further nested calls are refused at once.
    calls_without_answer: Mutex<HashSet<String>>,
    /// Receives each question that waits for an answer, for example to print it.
    announce: Box<dyn Fn(&RecordedApprovalRequest) + Send + Sync>,
}

/// The conversation's own calls that run or wait for an answer. Nested calls are not included.
#[derive(Debug, Default)]
struct OpenCalls {
    /// The questions without a decision.
    questions: Vec<RecordedApprovalRequest>,
    /// The number of calls that run.
    running: usize,
}

impl OpenCalls {
    fn has_only_questions(&self) -> bool {
        !self.questions.is_empty() && self.running == 0
    }
}

impl fmt::Debug for LaterAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaterAnswers").finish_non_exhaustive()
    }
}

impl LaterAnswers {
    /// Creates an approver that waits for an answer for at most `answer_timeout`. `announce` receives each question
    /// that waits; a call that is refused at once is not announced.
    pub(crate) fn new(
        answer_timeout: Duration,
        announce: impl Fn(&RecordedApprovalRequest) + Send + Sync + 'static,
    ) -> Self {
        Self {
            open_calls: watch::Sender::default(),
            answer_timeout,
            calls_without_answer: Mutex::default(),
            announce: Box::new(announce),
        }
    }

    /// Waits until at least one question is open and no call runs, and this state has lasted for the time for an
    /// answer. Returns the questions. A running call delays the return, because its outcome would be lost.
    pub(crate) async fn wait_until_only_questions(&self) -> Vec<RecordedApprovalRequest> {
        let mut open_calls = self.open_calls.subscribe();
        loop {
            // An error is not possible, because the sender is in `self`.
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

    fn calls_without_answer(&self) -> MutexGuard<'_, HashSet<String>> {
        self.calls_without_answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_for_answer_timeout(&self) {
        if !self.answer_timeout.is_zero() {
            sleep(self.answer_timeout).await;
        }
    }
}

/// Returns the id of the conversation's own call that directly or indirectly made a nested call: `a` for `a/2/1`.
fn outermost_call(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

#[async_trait]
impl Approver for LaterAnswers {
    async fn approve(&self, request: ApprovalRequest, _context: &ToolContext) -> ApprovalAnswer {
        let is_nested = !request.callers.is_empty();
        if is_nested && self.answer_timeout.is_zero() {
            return unanswered(
                "it needs an approval, and another call makes it, which cannot wait for a later process",
            );
        }
        let own_call_id = outermost_call(&request.id).to_owned();
        if is_nested && self.calls_without_answer().contains(&own_call_id) {
            return unanswered("it needs an approval, and an earlier question of the same call got no answer in time");
        }
        let question = RecordedApprovalRequest::from(&request);
        (self.announce)(&question);
        if is_nested {
            self.sleep_for_answer_timeout().await;
            self.calls_without_answer().insert(own_call_id);
            return unanswered("it needs an approval, and no answer came in time");
        }
        self.open_calls.send_modify(|calls| calls.questions.push(question));
        std::future::pending().await
    }
}

impl Observer for LaterAnswers {
    fn observe(&self, event: &Event, origin: &Origin) {
        if origin.parent_call.is_some() {
            return;
        }
        match event {
            Event::ApprovalDecided(decided) => {
                self.open_calls
                    .send_modify(|calls| calls.questions.retain(|question| question.id != decided.id));
            }
            Event::ToolStarted { .. } => self.open_calls.send_modify(|calls| calls.running += 1),
            Event::ToolReturned { .. } => {
                self.open_calls
                    .send_modify(|calls| calls.running = calls.running.saturating_sub(1));
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

    fn later_answers(wait: Duration) -> LaterAnswers {
        LaterAnswers::new(wait, |_| {})
    }

    #[tokio::test]
    async fn a_run_is_left_when_only_questions_are_open() {
        let later = later_answers(Duration::ZERO);
        let (context, request) = (ToolContext::new(), request(5));
        later.observe(&started(), &Origin::default());
        let mut pending_answer = later.approve(request.clone(), &context);
        let mut open_questions = Box::pin(later.wait_until_only_questions());
        tokio::select! {
            biased;
            answer = &mut pending_answer => panic!("nobody answers: {answer:?}"),
            open_questions = &mut open_questions => panic!("a call runs: {open_questions:?}"),
            () = std::future::ready(()) => {}
        }
        later.observe(&returned(), &Origin::default());
        assert_eq!(open_questions.await, [RecordedApprovalRequest::from(&request)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_waits_for_an_answer_before_it_is_left() {
        let (context, minute) = (ToolContext::new(), Duration::from_secs(60));
        let later = later_answers(minute);
        let mut pending_answer = later.approve(request(5), &context);
        let start = Instant::now();
        tokio::select! {
            answer = &mut pending_answer => panic!("nobody answers: {answer:?}"),
            open_questions = later.wait_until_only_questions() => assert_eq!(open_questions.len(), 1),
        }
        assert_eq!(start.elapsed(), minute);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_another_call_waits_for_a_running_process_only() {
        let mut nested = request(5);
        nested.callers = vec![ToolId::from_text("shop#order")];
        for (wait, reason) in [(0, "cannot wait for a later process"), (60, "no answer came in time")] {
            let start = Instant::now();
            let later = later_answers(Duration::from_secs(wait));
            let approval = later.approve(nested.clone(), &ToolContext::new()).await.approval;
            assert!(
                matches!(&approval, Approval::Unanswered { reason: text } if text.contains(reason)),
                "{approval:?}"
            );
            assert_eq!(start.elapsed(), Duration::from_secs(wait));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_once_for_all_calls_that_it_makes() {
        let minute = Duration::from_secs(60);
        let later = later_answers(minute);
        let ask = async |id: &str| {
            let mut nested = request(5);
            id.clone_into(&mut nested.id);
            nested.callers = vec![ToolId::from_text("shop#order")];
            later.approve(nested, &ToolContext::new()).await.approval
        };
        let start = Instant::now();
        for number in 1..=32 {
            let approval = ask(&format!("call-1/{number}")).await;
            assert!(matches!(approval, Approval::Unanswered { .. }), "{approval:?}");
        }
        assert_eq!(start.elapsed(), minute);
        ask("call-2/1").await;
        assert_eq!(start.elapsed(), 2 * minute, "another call has its own time");
    }

    fn returned() -> Event {
        let returned = json!({"event": "tool_returned", "id": "call-0", "outcome": {"text": "done"}});
        serde_json::from_value(returned).unwrap()
    }

    fn started() -> Event {
        serde_json::from_value(json!({"event": "tool_started", "id": "call-0", "name": "look", "tool": "bank#look"}))
            .unwrap()
    }
}
