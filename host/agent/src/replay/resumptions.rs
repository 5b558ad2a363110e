//! Traces of runs that were interrupted and resumed, in the form in which they would have been recorded without interruption.

use std::collections::HashSet;

use crate::event::{Event, TraceEntry};

/// Returns the entries without the interruptions of their runs. A resumed run repeats the request that had no response, and
/// the calls that had not ended. Of these, only the last events remain.
pub(super) fn without_interruptions<'e>(entries: impl IntoIterator<Item = &'e TraceEntry>) -> Vec<&'e TraceEntry> {
    let mut remaining = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::RunResumed { again, .. } if entry.origin.parent_call.is_none() => {
                remove_open_request(&mut remaining);
                remove_calls(&mut remaining, again);
            }
            _ => remaining.push(entry),
        }
    }
    remaining
}

/// Removes the start of the last inference and its request, if the request has no response.
fn remove_open_request(entries: &mut Vec<&TraceEntry>) {
    let is_response = |entry: &&TraceEntry| {
        matches!(
            entry.event,
            Event::ModelAnswered { .. } | Event::HistoryCompacted(_) | Event::TurnStarted { .. }
        ) && entry.origin.parent_call.is_none()
    };
    let first_open = entries.iter().rposition(is_response).map_or(0, |position| position + 1);
    let is_request = |event: &Event| matches!(event, Event::IterationStarted { .. } | Event::ModelAsked { .. });
    retain_from(entries, first_open, |entry| {
        entry.origin.parent_call.is_some() || !is_request(&entry.event)
    });
}

/// Removes the starts of calls of the last response, and the calls inside them.
fn remove_calls(entries: &mut Vec<&TraceEntry>, ids: &[String]) {
    // Responses to agents are recorded too.
    let is_response =
        |entry: &&TraceEntry| matches!(entry.event, Event::ModelAnswered { .. }) && entry.origin.parent_call.is_none();
    let first = entries.iter().rposition(is_response).unwrap_or(0);
    let mut removed: HashSet<String> = ids.iter().cloned().collect();
    retain_from(entries, first, |entry| match &entry.event {
        Event::ToolStarted { id, .. } => !removed.contains(id),
        Event::NestedCallStarted(call) => {
            let (id, parent) = call.ids();
            let is_kept = !removed.contains(&parent);
            if !is_kept {
                removed.insert(id);
            }
            is_kept
        }
        Event::NestedCallFinished(call) => !removed.contains(&call.ids().1),
        _ => true,
    });
}

/// Removes the entries from a position on that `is_kept` rejects.
fn retain_from(entries: &mut Vec<&TraceEntry>, first: usize, mut is_kept: impl FnMut(&TraceEntry) -> bool) {
    let mut position = 0;
    entries.retain(|entry| {
        position += 1;
        position <= first || is_kept(entry)
    });
}
