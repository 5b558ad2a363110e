//! Questions about calls that have neither started nor been refused.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::{Event, RecordedApprovalRequest, TraceEntry};
use toolwit_core::{ApprovalAnswer, ApprovalDecision};

/// A question about a call that waits in a session for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The number of the entry with the question. It identifies the question in its session.
    pub number: u64,
    /// The time of the question, in milliseconds since 1970 UTC.
    pub asked_at_ms: u64,
    /// The question, with the call as it would run.
    pub question: RecordedApprovalRequest,
    /// Whether an earlier question about the same call id differed, for example in the arguments or the grant.
    pub has_changed: bool,
    /// The stored answer, if there is one. The run has not used it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalAnswer>,
}

/// The questions of a session about calls that have neither started nor been refused, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenQuestions {
    open: Vec<OpenQuestion>,
    /// The ids of the calls that continue in the background.
    background_calls: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) number: u64,
    asked_at_ms: u64,
    question: RecordedApprovalRequest,
    has_changed: bool,
    /// Whether the process that asked the question has ended. If the resumed run asks an equal question, it counts as this
    /// one, with its number and its stored answer.
    is_of_earlier_process: bool,
}

impl From<OpenQuestion> for PendingApproval {
    fn from(open: OpenQuestion) -> Self {
        Self {
            number: open.number,
            asked_at_ms: open.asked_at_ms,
            question: open.question,
            has_changed: open.has_changed,
            answer: None,
        }
    }
}

impl OpenQuestions {
    /// Returns the open questions after these entries.
    pub(crate) fn of(entries: &[TraceEntry]) -> Self {
        let mut questions = Self::default();
        entries.iter().for_each(|entry| questions.apply(entry));
        questions
    }

    /// Returns the open question about the call with this id.
    pub(crate) fn find(&self, call: &str) -> Option<&OpenQuestion> {
        self.open.iter().find(|open| open.question.id == call)
    }

    /// Returns the questions. A question about a call that another call makes is included only if the process of the run still
    /// exists (`is_running`), because no other process can repeat such a call.
    pub(crate) fn pending(self, is_running: bool) -> impl Iterator<Item = PendingApproval> {
        let open = self.open.into_iter();
        open.filter(move |open| is_running || open.question.callers.is_empty())
            .map(PendingApproval::from)
    }

    /// Updates the questions with the next entry.
    pub(crate) fn apply(&mut self, entry: &TraceEntry) {
        // The entries of an agent have a parent call, and those of the conversation do not.
        let is_of_conversation = entry.origin.parent_call.is_none();
        match &entry.event {
            Event::ApprovalRequested(question) => self.add(entry, question),
            // The question about an approved call stays until the call starts: another process may need the approval again. A
            // call that another call makes is not repeated by another process.
            Event::ApprovalDecided(decided) => {
                let is_approved = matches!(decided.decision, ApprovalDecision::Approved | ApprovalDecision::Edited);
                let is_settled = |open: &OpenQuestion| !is_approved || !open.question.callers.is_empty();
                self.open
                    .retain(|open| open.question.id != decided.id || !is_settled(open));
            }
            Event::ToolStarted { id, .. } | Event::CallRefused { id, .. } | Event::CallGuided { id, .. } => {
                self.open.retain(|open| open.question.id != *id);
            }
            Event::ToolFinished { id, is_background, .. } => {
                self.open.retain(|open| open.question.id != *id);
                if *is_background {
                    self.background_calls.insert(id.clone());
                }
            }
            Event::LateResult { call, .. } => drop(self.background_calls.remove(call)),
            Event::RunResumed { .. } if is_of_conversation => {
                self.background_calls.clear();
                self.end_run();
                self.open.iter_mut().for_each(|open| open.is_of_earlier_process = true);
            }
            Event::TurnStarted { .. } | Event::Finished { .. } | Event::OpenCallsAnswered { .. }
                if is_of_conversation =>
            {
                self.open.retain(|open| !open.question.callers.is_empty());
                self.end_run();
            }
            _ => {}
        }
    }

    /// Adds a question, in place of an earlier one about the same call.
    fn add(&mut self, entry: &TraceEntry, question: &RecordedApprovalRequest) {
        let earlier = self.open.iter_mut().find(|open| open.question.id == question.id);
        let has_changed = match earlier {
            Some(open) if open.is_of_earlier_process && open.question == *question => {
                open.is_of_earlier_process = false;
                return;
            }
            Some(open) => open.has_changed || !is_same_call(&open.question, question),
            None => false,
        };
        self.open.retain(|open| open.question.id != question.id);
        self.open.push(OpenQuestion {
            number: entry.sequence,
            asked_at_ms: entry.at_ms,
            question: question.clone(),
            has_changed,
            is_of_earlier_process: false,
        });
    }

    /// Removes the questions about calls that other calls make. If a call continues in the background, these questions stay,
    /// because they can be about calls that it makes.
    fn end_run(&mut self) {
        if self.background_calls.is_empty() {
            self.open.retain(|open| open.question.callers.is_empty());
        }
    }
}

/// Returns whether two questions are about the same call, with the same code, effect class and grant.
fn is_same_call(one: &RecordedApprovalRequest, other: &RecordedApprovalRequest) -> bool {
    (&one.tool, &one.arguments, &one.digest, &one.callers)
        == (&other.tool, &other.arguments, &other.digest, &other.callers)
}
