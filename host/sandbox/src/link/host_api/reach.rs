//! What a guest reaches of its conversation during one call.

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::nesting::CallStack;
use super::values::weight;
use crate::call::instance::CallClock;
use crate::call::tally::Tally;
use crate::grants::authority::Authority;
use crate::grants::{AccessMode, AccessRequest};
use toolwit_core::limits::{ByteCount, CallLimits};
use toolwit_core::text::printable;
use toolwit_core::{Artifact, BlackboardEntry, ToolContext};

/// The longest text that the user is told at once, in bytes; the rest of a longer one is dropped.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The conversation as a guest sees it: bounded, redacted, and by grant.
pub(crate) struct Reach {
    pub(super) context: ToolContext,
    pub(super) authority: Authority,
    pub(super) limits: CallLimits,
    pub(super) deadline: Instant,
    /// The calls that the guest has made, from the first one on.
    nested_calls: OnceLock<Arc<Tally>>,
    artifacts: Vec<Artifact>,
    artifact_bytes: u64,
    /// What the user was told so far.
    told_bytes: usize,
}

impl Reach {
    pub(crate) fn new(authority: &Authority, clock: &CallClock<'_>) -> Self {
        Self {
            context: clock.context.clone(),
            authority: authority.clone(),
            limits: clock.limits.clone(),
            deadline: clock.deadline(),
            nested_calls: OnceLock::new(),
            artifacts: Vec::new(),
            artifact_bytes: 0,
            told_bytes: 0,
        }
    }

    /// Counts the calls that the guest makes.
    pub(super) fn nested_calls(&self) -> &Arc<Tally> {
        let count = || CallStack::count_inside(&self.context, self.limits.nested_calls_max);
        self.nested_calls.get_or_init(count)
    }

    /// Takes out the objects that the guest handed over.
    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        std::mem::take(&mut self.artifacts)
    }

    /// Reads a granted key of the context as JSON.
    pub(super) fn context_value(&self, key: &str) -> Option<String> {
        let effective = &self.authority.rights.effective;
        match effective.require(&AccessRequest::ContextKey(key)) {
            Ok(_) => self.context.get(key).map(ToString::to_string),
            Err(denial) => {
                // Not told to the guest, to which a key that it may not read is not there.
                tracing::debug!(plugin = %self.authority.plugin, key, %denial, "a key of the context was refused");
                None
            }
        }
    }

    pub(super) fn progress(&mut self, text: &str) {
        if let Some(text) = self.tellable(text) {
            self.context.output().progress(&text);
        }
    }

    pub(super) fn communicate(&mut self, text: &str) {
        if let Some(text) = self.tellable(text) {
            self.context.output().communicate(&text);
        }
    }

    /// Makes a guest's text fit for a person: without secrets and control characters, and within what a call may say.
    fn tellable(&mut self, text: &str) -> Option<String> {
        let left = self
            .limits
            .log_bytes_max
            .saturating_sub(self.told_bytes)
            .min(TEXT_BYTES_MAX);
        // Redacted when the control characters are gone, so that none hides a secret, and before it is cut, so that half of a
        // secret is none either.
        let clean = self.authority.redactor.text(&printable(text)).into_owned();
        let mut end = clean.len().min(left);
        while !clean.is_char_boundary(end) {
            end -= 1;
        }
        self.told_bytes += end;
        (end > 0).then(|| clean[..end].to_owned())
    }

    /// Takes an object for the result of the call.
    pub(super) fn hand_over(&mut self, artifact: Result<Artifact, String>) -> Result<(), String> {
        let artifact = artifact?;
        let bytes = (artifact.kind.len() + weight(&artifact.value.to_string())) as u64;
        let max = self.limits.artifact_bytes_max;
        if self.artifact_bytes.saturating_add(bytes) > max {
            return Err(format!("a call may hand over {} of artifacts", ByteCount(max)));
        }
        self.artifact_bytes += bytes;
        self.artifacts.push(artifact);
        Ok(())
    }

    pub(super) fn blackboard_get(&self, name: &str) -> Option<Artifact> {
        self.may_use_blackboard(AccessMode::Read).ok()?;
        let entry = self.context.blackboard().ok()?.get(name)?;
        Some(entry.artifact().clone())
    }

    pub(super) fn blackboard_put(
        &self,
        name: Option<String>,
        artifact: impl FnOnce() -> Result<Artifact, String>,
    ) -> Result<(), String> {
        self.may_use_blackboard(AccessMode::ReadWrite)?;
        let mut artifact = artifact()?;
        // What lies there is read by others, who know nothing of this plugin's secrets.
        let redactor = &self.authority.redactor;
        artifact.kind = redactor.text(&artifact.kind).into_owned();
        redactor.value(&mut artifact.value);
        let name = name.map(|name| redactor.text(&name).into_owned());
        let blackboard = self.context.blackboard().map_err(|error| error.to_string())?;
        blackboard
            .place(name.as_deref(), artifact)
            .map_err(|error| error.to_string())
    }

    pub(super) fn blackboard_list(&self) -> Vec<BlackboardEntry> {
        match (self.may_use_blackboard(AccessMode::Read), self.context.blackboard()) {
            (Ok(()), Ok(blackboard)) => blackboard.entries(),
            _ => Vec::new(),
        }
    }

    /// Decides about the objects of the conversation. What is refused is told to whoever reads how the call went.
    fn may_use_blackboard(&self, wanted: AccessMode) -> Result<(), String> {
        match self
            .authority
            .rights
            .effective
            .require(&AccessRequest::Blackboard(wanted))
        {
            Ok(_) => Ok(()),
            Err(denial) => {
                let what = match wanted {
                    AccessMode::Read => "read the blackboard",
                    _ => "write to the blackboard",
                };
                self.authority
                    .deny(what.to_owned(), &denial, "blackboard", &wanted.to_string());
                Err(format!("it may not {what}: {denial}"))
            }
        }
    }
}
