//! The events of a replay.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::divergence_check::DivergenceCheck;
use super::recording::Recording;
use crate::event::{Event, Observer, TRACE_VERSION, TraceEntry};
use toolwit_core::Origin;

/// An observer that records the events of a replay. To make two replays of a trace equal, the events have the time of
/// the first recorded event, the recorded ids of the process and its runs, and durations of zero.
pub(super) struct ReplayLog {
    /// The time of all replayed events, in milliseconds since 1970 UTC: the time of the first event of the trace.
    at_ms: u64,
    /// The id of the recorded process.
    process: String,
    /// The ids of the recorded runs.
    run_ids: Vec<String>,
    check: Arc<DivergenceCheck>,
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    entries: Vec<Value>,
    /// The number of runs that began.
    run_count: usize,
    /// The number of events before the divergence; `None` without a divergence.
    count_before_divergence: Option<usize>,
}

impl ReplayLog {
    pub(super) fn new(recording: &Recording, check: Arc<DivergenceCheck>) -> Self {
        let conversation_entries = recording
            .entries()
            .iter()
            .filter(|entry| entry.origin.parent_call.is_none());
        let run_ids = conversation_entries.clone().filter_map(|entry| match &entry.event {
            Event::TurnStarted { loop_id, .. } => Some(loop_id.clone()),
            _ => None,
        });
        let is_run_event = |entry: &&TraceEntry| !matches!(entry.event, Event::TraceStarted { .. });
        let log = Self {
            at_ms: recording.started_at_ms(),
            process: conversation_entries
                .clone()
                .find(is_run_event)
                .map_or_else(String::new, |entry| entry.origin.process.clone()),
            run_ids: run_ids.collect(),
            check,
            state: Mutex::default(),
        };
        let first_entry = recording.entries().first();
        if let Some(started) = first_entry.filter(|entry| matches!(entry.event, Event::TraceStarted { .. })) {
            log.push(started.event.clone(), started.origin.clone());
        }
        log
    }

    pub(super) fn entries(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.clone()
    }

    /// Returns the events before the divergence, or all events if there is no divergence.
    pub(super) fn entries_before_divergence(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.count_before_divergence.unwrap_or(state.entries.len());
        state.entries[..count.min(state.entries.len())].to_vec()
    }

    /// Appends an event, with the recorded time and ids and a duration of zero.
    fn push(&self, mut event: Event, origin: Origin) {
        let has_diverged = self.check.divergence().is_some();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if has_diverged && state.count_before_divergence.is_none() {
            state.count_before_divergence = Some(state.entries.len());
        }
        if let Event::TurnStarted { loop_id, .. } = &mut event {
            let index = state.run_count;
            state.run_count += 1;
            *loop_id = self
                .run_ids
                .get(index)
                .cloned()
                .unwrap_or_else(|| format!("run-{}", index + 1));
        }
        let entry = TraceEntry {
            version: TRACE_VERSION,
            sequence: state.entries.len() as u64,
            at_ms: self.at_ms,
            origin,
            event,
        };
        let Ok(mut value) = serde_json::to_value(&entry) else {
            return;
        };
        if let Some(wall_ms) = value.get_mut("wall_ms") {
            *wall_ms = 0.into();
        }
        state.entries.push(value);
    }
}

impl Observer for ReplayLog {
    fn observe(&self, event: &Event, origin: &Origin) {
        // The number of progress events depends on time. The events of nested agents are not compared.
        if matches!(event, Event::Progress { .. }) || origin.parent_call.is_some() {
            return;
        }
        self.check.observe(event);
        let origin = Origin {
            process: self.process.clone(),
            ..origin.clone()
        };
        self.push(event.clone(), origin);
    }
}
