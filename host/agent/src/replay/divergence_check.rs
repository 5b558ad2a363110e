//! The comparison of the requests and calls of a replay with those of its trace, before the replay answers them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::divergence::{Divergence, has_same_arguments, refused_call_id};
use super::recording::{Recording, RequestDigest};
use crate::event::Event;
use crate::model::ChatRequest;

/// A check that finds the first request or call of a replay that differs from its trace.
pub(super) struct DivergenceCheck {
    recording: Arc<Recording>,
    /// The number of the event from which on differences are allowed.
    fork: Option<u64>,
    /// Whether the fork was passed.
    is_live: Arc<AtomicBool>,
    state: Mutex<CheckState>,
}

#[derive(Default)]
struct CheckState {
    /// The digest of the last announced request, if it was not compared yet.
    announced_digest: Option<String>,
    /// The first request or call that differs.
    divergence: Option<Divergence>,
}

impl DivergenceCheck {
    pub(super) fn new(recording: Arc<Recording>, fork: Option<u64>, is_live: Arc<AtomicBool>) -> Self {
        Self {
            recording,
            fork,
            is_live,
            state: Mutex::default(),
        }
    }

    pub(super) fn divergence(&self) -> Option<Divergence> {
        self.lock().divergence.clone()
    }

    /// Records the digest of a request that the event announces, or compares the start of a call with the trace.
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

    /// Compares the announced request with the recorded one. If one of the two is missing, nothing is compared.
    pub(super) fn check_request(&self, recorded: Option<&RequestDigest>, request: &ChatRequest<'_>) {
        let announced = self.lock().announced_digest.take();
        let Some((recorded, announced)) = recorded.zip(announced) else {
            return;
        };
        if recorded.digest != announced && !self.is_after_fork(recorded.sequence) {
            let divergence = Divergence::of_request(self.recording.entries(), recorded.sequence, request);
            self.lock().divergence.get_or_insert(divergence);
        }
    }

    /// Returns the divergence of the start of a call; `None` if the start is equal to that of the trace or is not
    /// compared.
    fn compare_start(&self, event: &Event) -> Option<Divergence> {
        let Event::ToolStarted { id, tool, start, .. } = event else {
            return None;
        };
        let start = start.as_deref();
        let Some(recorded) = self.recording.calls.get(id) else {
            // A call for which the trace has neither a start nor a refusal was cancelled in the recorded run. It is not
            // compared.
            let sequence = self.sequence_of_refusal(id)?;
            let is_compared = !self.is_after_fork(sequence);
            return is_compared.then(|| Divergence::of_call(sequence, id, None, (tool, start)));
        };
        let is_same = recorded.tool == *tool && has_same_arguments(recorded.start.as_ref(), start);
        if is_same || self.is_after_fork(recorded.sequence) {
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
    fn sequence_of_refusal(&self, id: &str) -> Option<u64> {
        let mut entries = self.recording.entries().iter();
        let refusal = entries.find(|entry| {
            entry.origin.parent_call.is_none() && refused_call_id(&entry.event).is_some_and(|refused| refused == id)
        });
        refusal.map(|entry| entry.sequence)
    }

    /// Returns whether an event may differ from the trace, because it comes at the fork or after it.
    fn is_after_fork(&self, sequence: u64) -> bool {
        self.is_live.load(Ordering::Relaxed) || self.fork.is_some_and(|fork| sequence >= fork)
    }

    fn lock(&self) -> MutexGuard<'_, CheckState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
