//! What a run has used and brought so far.

use super::event::Event;
use super::outcome::{CallRecord, RunUsage};
use toolwit_core::{Artifact, ToolName};

#[derive(Default)]
pub(super) struct Tally {
    pub(super) iterations: u32,
    /// The calls that were run.
    pub(super) calls: Vec<CallRecord>,
    /// How many calls the model asked for.
    pub(super) calls_wanted: u32,
    /// What tools handed over.
    pub(super) artifacts: Vec<Artifact>,
    pub(super) injected: Vec<ToolName>,
    pub(super) removed: Vec<ToolName>,
    pub(super) usage: RunUsage,
    /// How many responses in a row held a name that no tool has.
    pub(super) unknown_streak: u32,
    /// What the model said last.
    pub(super) text: Option<String>,
}

impl Tally {
    /// Counts what an event says about the tools.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::ToolsInjected {
                names, prompt_bytes, ..
            } => {
                self.injected.extend(names.iter().cloned());
                self.usage.injected_bytes = self.usage.injected_bytes.saturating_add(*prompt_bytes);
            }
            Event::ToolsRemoved { names, .. } => self.removed.extend(names.iter().cloned()),
            _ => {}
        }
    }
}
