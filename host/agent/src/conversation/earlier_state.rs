//! Restores the state of a conversation from its journal.

use crate::RunUsage;
use crate::event::{Event, TraceEntry};
use crate::journal::{InterruptedRun, Journal, JournalError, interrupted_run, messages};
use crate::model::{Cost, TokenUsage};
use crate::process::{ModelUsageKind, ProcessAction};
use crate::state::{CallIds, ConversationState, History, cancelled_call, error_text};
use toolwit_core::Error;

/// Takes the entries of earlier processes out of a journal. Returns the history and the events of the conversation, and its
/// interrupted run.
pub(super) fn take_earlier_state(
    journal: &Journal,
    ids: &CallIds,
) -> Result<(History, Vec<Event>, Option<InterruptedRun>), Error> {
    let all_entries = journal.take_earlier_entries();
    ids.claim_all(all_entries.iter().flat_map(|entry| call_ids(&entry.event)));
    let is_of_conversation = |entry: &&TraceEntry| entry.origin.parent_call.is_none();
    let entries: Vec<_> = all_entries.iter().filter(is_of_conversation).collect();
    check_calls(&entries)?;
    let messages = messages(entries.iter().copied(), &error_text(&cancelled_call()));
    let history = History::with_open_calls(messages, ids.clone())
        .map_err(|error| JournalError::Divergence(error.message.clone()))?;
    let events: Vec<_> = entries.into_iter().map(|entry| entry.event.clone()).collect();
    let interrupted = interrupted_run(&all_entries, &events);
    Ok((history, events, interrupted))
}

/// Returns the ids of the calls that an event adds to a history. A history that was compacted lacks the ids of its older calls,
/// and that of an agent is not restored. But a new call with such an id would also have the idempotency key of the old one.
fn call_ids(event: &Event) -> Vec<&String> {
    match event {
        Event::ModelAnswered { tool_calls, .. } => tool_calls.iter().map(|call| &call.id).collect(),
        Event::LateResult { id, .. } => vec![id],
        _ => Vec::new(),
    }
}

/// Checks that each entry about a running or completed call comes after the entry that contains the call.
fn check_calls(entries: &[&TraceEntry]) -> Result<(), JournalError> {
    let mut call_ids = std::collections::HashSet::new();
    for entry in entries {
        let call_id = match &entry.event {
            Event::ModelAnswered { tool_calls, .. } => {
                call_ids.extend(tool_calls.iter().map(|call| call.id.clone()));
                continue;
            }
            Event::LateResult { id, .. } => {
                call_ids.insert(id.clone());
                continue;
            }
            Event::ToolStarted { id, .. } | Event::ToolReturned { id, .. } | Event::ToolFinished { id, .. } => id,
            _ => continue,
        };
        if !call_ids.contains(call_id) {
            // The message ends with a diff: the expected call after `-`, the recorded call after `+`.
            let message = format!(
                "entry {} refers to a call that the model did not make\n- a call of the model\n+ `{call_id}`",
                entry.sequence
            );
            return Err(JournalError::Divergence(message));
        }
    }
    Ok(())
}

/// Restores the runs, calls and usage of the conversation's [`AgentProcess`](crate::process::AgentProcess) from the events of its journal.
/// The usage of agents inside the conversation counts as usage of the current model. It is known for each process that ended a
/// run, but not for one in which the run was suspended or interrupted. The calls of agents are not restored. The cost of an inference is computed with the price of the current model. Does nothing without a
/// journal.
pub(super) fn restore_usage(conversation: &ConversationState, events: &[Event]) {
    if conversation.journal.is_none() {
        return;
    }
    let process = &conversation.process;
    let (account, model) = (process.account(), &conversation.model);
    let mut run = ChargedUsage::default();
    let charge = |usage: ChargedUsage| {
        account.charge(ModelUsageKind::Chat, model.name(), usage.tokens, usage.cost);
    };
    let inference = |tokens: &TokenUsage| ChargedUsage {
        tokens: *tokens,
        cost: model.price().map_or(Cost::ZERO, |price| price.cost(tokens)),
    };
    for event in events {
        match event {
            Event::TurnStarted { prompt, .. } => {
                process.begin_run(prompt.as_deref());
                run = ChargedUsage::default();
            }
            // The usage in `Finished` is that of the process that resumed the run.
            Event::RunResumed { .. } => run = ChargedUsage::default(),
            Event::ModelAnswered { usage, .. } => charge(run.add(inference(usage))),
            Event::HistoryCompacted(compaction) => charge(run.add(inference(&compaction.usage))),
            Event::ToolFinished {
                name,
                tool,
                wall_ms,
                is_error,
                ..
            } => {
                account.take_calls(1);
                process.record_action(ProcessAction::new(name.clone(), tool.clone(), *wall_ms, *is_error));
            }
            Event::Finished { stop, usage, .. } => {
                process.end_run(*stop);
                let agents = run.missing_from(usage);
                if agents != ChargedUsage::default() {
                    charge(agents);
                }
            }
            _ => {}
        }
    }
}

/// The usage of a run that was charged to an account.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct ChargedUsage {
    tokens: TokenUsage,
    cost: Cost,
}

impl ChargedUsage {
    /// Adds the usage of an inference, and returns that usage.
    fn add(&mut self, inference: Self) -> Self {
        self.tokens += inference.tokens;
        self.cost = self.cost.saturating_add(inference.cost);
        inference
    }

    /// Returns the part of a run's usage that was not charged: the usage of its agents.
    fn missing_from(&self, run: &RunUsage) -> Self {
        Self {
            tokens: run.tokens.saturating_sub(self.tokens),
            cost: run.cost_usd.saturating_sub(self.cost),
        }
    }
}
