//! Open questions: approval requests for calls that have neither started nor been refused.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::{Event, RecordedApprovalRequest, TraceEntry};
use toolwit_core::{ApprovalAnswer, ApprovalDecision};

/// An approval request that is stored in a session. Its call has neither started nor been refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The number of the journal entry that contains the request. The number identifies the question in its session.
    pub number: u64,
    /// The time of the request, in milliseconds since 1970 UTC.
    pub asked_at_ms: u64,
    /// The request, with the call as it would run.
    pub question: RecordedApprovalRequest,
    /// Whether an earlier request with the same call id was different, for example in the arguments or the grant.
    pub has_changed: bool,
    /// The stored answer, if there is one. The run has not used it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalAnswer>,
}

/// The questions of a session about calls that have neither started nor been refused, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenQuestions {
    questions: Vec<OpenQuestion>,
    /// The ids of the calls that continue in the background.
    background_calls: BTreeSet<String>,
}

/// A [`PendingApproval`] without its answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) number: u64,
    asked_at_ms: u64,
    request: RecordedApprovalRequest,
    has_changed: bool,
    /// Whether the process that asked the question has ended. If the resumed run makes an equal request, this question stays
    /// open, with its number and its stored answer.
    is_from_earlier_process: bool,
}

impl From<OpenQuestion> for PendingApproval {
    fn from(question: OpenQuestion) -> Self {
        Self {
            number: question.number,
            asked_at_ms: question.asked_at_ms,
            question: question.request,
            has_changed: question.has_changed,
            answer: None,
        }
    }
}

impl OpenQuestion {
    /// Returns whether the question is about a nested call: a call that a running tool makes. No other process can repeat a
    /// nested call.
    fn is_about_nested_call(&self) -> bool {
        !self.request.callers.is_empty()
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
        self.questions.iter().find(|question| question.request.id == call)
    }

    /// Returns the questions. Questions about nested calls are included only if the process of the run still exists
    /// (`is_running`).
    pub(crate) fn pending(self, is_running: bool) -> impl Iterator<Item = PendingApproval> {
        let questions = self.questions.into_iter();
        questions
            .filter(move |question| is_running || !question.is_about_nested_call())
            .map(PendingApproval::from)
    }

    /// Updates the questions with the next entry.
    pub(crate) fn apply(&mut self, entry: &TraceEntry) {
        // The entries of an agent have a parent call, and those of the conversation do not.
        let is_of_conversation = entry.origin.parent_call.is_none();
        match &entry.event {
            Event::ApprovalRequested(request) => self.add(entry, request),
            // The question about an approved call stays until the call starts, because another process may need the approval
            // again. No other process can need the approval of a nested call.
            Event::ApprovalDecided(decided) => {
                let is_approved = matches!(decided.decision, ApprovalDecision::Approved | ApprovalDecision::Edited);
                let stays = |question: &OpenQuestion| is_approved && !question.is_about_nested_call();
                self.questions
                    .retain(|question| question.request.id != decided.id || stays(question));
            }
            Event::ToolStarted { id, .. } | Event::CallRefused { id, .. } | Event::CallGuided { id, .. } => {
                self.remove(id);
            }
            Event::ToolFinished { id, is_background, .. } => {
                self.remove(id);
                if *is_background {
                    self.background_calls.insert(id.clone());
                }
            }
            Event::LateResult { call, .. } => drop(self.background_calls.remove(call)),
            Event::RunResumed { .. } if is_of_conversation => {
                self.background_calls.clear();
                self.remove_nested_questions();
                self.questions
                    .iter_mut()
                    .for_each(|question| question.is_from_earlier_process = true);
            }
            Event::TurnStarted { .. } | Event::Finished { .. } | Event::OpenCallsAnswered { .. }
                if is_of_conversation =>
            {
                self.questions.retain(OpenQuestion::is_about_nested_call);
                self.remove_nested_questions();
            }
            _ => {}
        }
    }

    /// Adds the question of a request, in place of an earlier question about the same call. If an earlier process made an equal
    /// request, its question stays instead.
    fn add(&mut self, entry: &TraceEntry, request: &RecordedApprovalRequest) {
        let mut questions = self.questions.iter_mut();
        let has_changed = match questions.find(|question| question.request.id == request.id) {
            Some(earlier) if earlier.is_from_earlier_process && earlier.request.is_equal(request) => {
                earlier.is_from_earlier_process = false;
                return;
            }
            Some(earlier) => earlier.has_changed || !is_same_call(&earlier.request, request),
            None => false,
        };
        self.remove(&request.id);
        self.questions.push(OpenQuestion {
            number: entry.sequence,
            asked_at_ms: entry.at_ms,
            request: request.clone(),
            has_changed,
            is_from_earlier_process: false,
        });
    }

    /// Removes the question about the call with this id.
    fn remove(&mut self, call: &str) {
        self.questions.retain(|question| question.request.id != call);
    }

    /// Removes the questions about nested calls, unless a call continues in the background: that call can have made the
    /// nested calls.
    fn remove_nested_questions(&mut self) {
        if self.background_calls.is_empty() {
            self.questions.retain(|question| !question.is_about_nested_call());
        }
    }
}

/// Returns whether two requests are for the same call: with the same tool, arguments and callers, and with the same digest of
/// the definition, code, effect class and grant.
fn is_same_call(left: &RecordedApprovalRequest, right: &RecordedApprovalRequest) -> bool {
    (&left.tool, &left.arguments, &left.digest, &left.callers)
        == (&right.tool, &right.arguments, &right.digest, &right.callers)
}
