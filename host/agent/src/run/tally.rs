//! Counters of a run.

use std::sync::{Mutex, PoisonError};

use super::injection_meter::InjectionMeter;
use crate::event::{Event, InjectionCost};
use crate::journal::InterruptedRun;
use crate::model::TokenUsage;
use crate::outcome::{CallRecord, RunUsage};
use toolwit_core::{Artifact, DeniedAccess, ToolName};

/// The counts and the collected results of a run so far.
#[derive(Default)]
pub(super) struct RunTally {
    /// The number of inferences, without those that summarize the history.
    pub(super) iterations: u32,
    /// The calls that ran.
    pub(super) calls: Vec<CallRecord>,
    /// The number of calls that the model requested, including those that did not run.
    pub(super) calls_requested: u32,
    /// The artifacts of tool results.
    pub(super) artifacts: Vec<Artifact>,
    /// The accesses that the host denied to plugins.
    pub(super) denied: Vec<DeniedAccess>,
    /// The names of the injected tools.
    pub(super) injected: Vec<ToolName>,
    /// The names of the removed tools.
    pub(super) removed: Vec<ToolName>,
    /// The bytes and tokens that injected tools added. The other fields are zero here, because the
    /// [account](crate::process::Account) of the run counts them.
    pub(super) usage: RunUsage,
    /// The meter of the tokens that injected tools add to requests.
    pub(super) injection_meter: InjectionMeter,
    /// The number of consecutive responses that called an unknown tool.
    pub(super) unknown_streak: u32,
    /// Whether the declared tools or their definitions changed.
    pub(super) has_changed_declarations: bool,
    /// The last non-empty text of the model.
    pub(super) last_text: Option<String>,
    /// The text of the current response that the user has seen so far; empty after the response is complete.
    pub(super) streamed_text: Mutex<String>,
}

impl RunTally {
    /// Restores the inferences and the calls of a run that an earlier process began.
    pub(super) fn restore(&mut self, interrupted: &InterruptedRun) {
        self.iterations = interrupted.iterations;
        self.calls_requested = interrupted.answered_call_count;
        self.calls.clone_from(&interrupted.answered_calls);
    }

    /// Takes the text that the user has seen of an incomplete response.
    pub(super) fn take_streamed_text(&self) -> String {
        std::mem::take(&mut *self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Measures the cost of the tools that were injected since the last request, and adds it to the usage of the run.
    /// Returns the cost, or `None` if no tool was injected. `message_tokens` is the estimated size of the messages of
    /// this request.
    pub(super) fn add_injection_cost(&mut self, message_tokens: usize, usage: &TokenUsage) -> Option<InjectionCost> {
        let cost = self.injection_meter.measure(message_tokens, usage)?;
        self.usage.injected_tokens = self.usage.injected_tokens.saturating_add(cost.tokens());
        Some(cost)
    }

    /// Records the tools that an event adds or removes, and the accesses that the event reports as denied.
    pub(super) fn record(&mut self, event: &Event) {
        self.has_changed_declarations |= changes_declarations(event);
        match event {
            Event::ToolsInjected {
                names, prompt_bytes, ..
            } => {
                self.injected.extend(names.iter().cloned());
                self.usage.injected_bytes = self.usage.injected_bytes.saturating_add(*prompt_bytes);
                self.injection_meter.add_injected(*prompt_bytes);
            }
            Event::AccessDenied { denied, .. } => self.denied.extend(denied.iter().cloned()),
            Event::ToolsRemoved { names, .. } => self.removed.extend(names.iter().cloned()),
            _ => {}
        }
    }
}

/// Returns whether an event changes the declared tools or their definitions.
fn changes_declarations(event: &Event) -> bool {
    matches!(
        event,
        Event::ToolsInjected { .. }
            | Event::ToolsRemoved { .. }
            | Event::ToolsRedefined { .. }
            | Event::ToolsRestored { .. }
            | Event::ToolsEvicted { .. }
            | Event::ToolsFolded { .. }
    )
}
