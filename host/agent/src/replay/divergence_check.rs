//! The comparison of the requests and calls of a replay with those of its trace, before the replay answers them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::divergence::{Divergence, has_same_arguments, unstarted_call_id};
use super::recording::{Recording, RequestDigest};
use crate::event::Event;
use crate::model::ChatRequest;

/// A check that finds the first request or call of a replay that differs from its trace.
pub(super) struct DivergenceCheck {
    recording: Arc<Recording>,
    /// The number of the event at which the replay forks; `None` for a replay without a fork. From this event on,
    /// differences are allowed.
    fork: Option<u64>,
    /// Whether the model was asked for a response at or after the fork.
    has_passed_fork: Arc<AtomicBool>,
    state: Mutex<CheckState>,
}

#[derive(Default)]
struct CheckState {
    /// The digest of the last announced request; `None` after the request was compared.
    announced_digest: Option<String>,
    /// The first request or call that differs.
    divergence: Option<Divergence>,
}

impl DivergenceCheck {
    pub(super) fn new(recording: Arc<Recording>, fork: Option<u64>, has_passed_fork: Arc<AtomicBool>) -> Self {
        Self {
            recording,
            fork,
            has_passed_fork,
            state: Mutex::default(),
        }
    }

    pub(super) fn divergence(&self) -> Option<Divergence> {
        self.lock().divergence.clone()
    }

    /// Handles an event of the replay: records the digest of an announced request, or compares the start of a call with
    /// the trace.
    pub(super) fn observe(&self, event: &Event) {
        match event {
            Event::ModelAsked { request, .. } => self.lock().announced_digest = Some(request.clone()),
            Event::ToolStarted { .. } => {
                if let Some(divergence) = self.compare_start(event) {
                    self.lock().divergence.get_or_insert(divergence);
                }
            }
            _ => {}
        }
    }

    /// Compares the digest of the announced request with the recorded digest, if both exist.
    pub(super) fn check_request(&self, recorded: Option<&RequestDigest>, request: &ChatRequest<'_>) {
        let announced = self.lock().announced_digest.take();
        let Some((recorded, announced)) = recorded.zip(announced) else {
            return;
        };
        if recorded.digest != announced && !self.is_at_or_after_fork(recorded.sequence) {
            let divergence = Divergence::of_request(self.recording.entries(), recorded.sequence, request);
            self.lock().divergence.get_or_insert(divergence);
        }
    }

    /// Returns the divergence of the start of a call. Returns `None` if the start is equal to the recorded start, or is
    /// not compared.
    fn compare_start(&self, event: &Event) -> Option<Divergence> {
        let Event::ToolStarted { id, tool, start, .. } = event else {
            return None;
        };
        let start = start.as_deref();
        let Some(recorded) = self.recording.calls.get(id) else {
            // If the trace has neither a start of this call nor an answer without a start, the recorded run cancelled the
            // call. Then it is not compared.
            let sequence = self.sequence_of_unstarted_call(id)?;
            let is_compared = !self.is_at_or_after_fork(sequence);
            return is_compared.then(|| Divergence::of_call(sequence, id, None, (tool, start)));
        };
        let is_same = recorded.tool == *tool && has_same_arguments(recorded.start.as_ref(), start);
        if is_same || self.is_at_or_after_fork(recorded.sequence) {
            return None;
        }
        let expected = (&recorded.tool, recorded.start.as_ref());
        Some(Divergence::of_call(
            recorded.sequence,
            id,
            Some(expected),
            (tool, start),
        ))
    }

    /// Returns the number of the event with which the recorded run answered a call that did not start, or `None` if the
    /// trace has no such event.
    fn sequence_of_unstarted_call(&self, id: &str) -> Option<u64> {
        let mut entries = self.recording.entries().iter();
        let answer =
            entries.find(|entry| entry.origin.parent_call.is_none() && unstarted_call_id(&entry.event) == Some(id));
        answer.map(|entry| entry.sequence)
    }

    /// Returns whether an event comes at or after the fork, so that it may differ from the trace.
    fn is_at_or_after_fork(&self, sequence: u64) -> bool {
        self.has_passed_fork.load(Ordering::Relaxed) || self.fork.is_some_and(|fork| sequence >= fork)
    }

    fn lock(&self) -> MutexGuard<'_, CheckState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
