//! The access of a guest to its conversation during one call.

use std::sync::{Arc, OnceLock};

use super::ask::AskedQuestions;
use super::nested_call::CallStack;
use crate::grants::authority::Authority;
use crate::grants::{AccessMode, AccessRequest};
use crate::link::limits::call_clock::{CallClock, Deadline};
use crate::link::limits::nested_budget::NestedBudget;
use toolwit_core::limits::{ByteCount, CallLimits, OUTPUT_BYTES_MAX};
use toolwit_core::text::{json_weight, printable};
use toolwit_core::{Artifact, BlackboardEntry, LogLevel, ToolContext};

/// The access of a guest to its conversation during one call. The grants and limits of the guest restrict the access, and secrets
/// are redacted.
pub(crate) struct ConversationAccess {
    pub(super) context: ToolContext,
    pub(super) authority: Authority,
    pub(super) limits: CallLimits,
    pub(super) deadline: Deadline,
    /// The budget of the guest's nested calls, created by the first of them.
    nested_budget: OnceLock<Arc<NestedBudget>>,
    artifacts: Vec<Artifact>,
    /// The estimated memory of the attached artifacts, in bytes.
    artifact_memory_bytes: u64,
    /// The size of the texts that the user has received so far, in bytes.
    user_text_bytes: usize,
    /// The questions that the call and its nested calls have asked.
    pub(super) questions: AskedQuestions,
}

impl ConversationAccess {
    pub(crate) fn new(authority: &Authority, clock: &CallClock<'_>) -> Self {
        Self {
            context: clock.context.clone(),
            authority: authority.clone(),
            limits: clock.limits.clone(),
            deadline: clock.deadline(),
            nested_budget: OnceLock::new(),
            artifacts: Vec::new(),
            artifact_memory_bytes: 0,
            user_text_bytes: 0,
            questions: AskedQuestions::of(clock.context),
        }
    }

    /// Returns the budget of the calls that the guest makes.
    pub(super) fn nested_budget(&self) -> &Arc<NestedBudget> {
        let create_budget = || CallStack::nested_call_budget(&self.context, self.limits.nested_calls_max);
        self.nested_budget.get_or_init(create_budget)
    }

    /// Takes the artifacts that the guest attached.
    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        std::mem::take(&mut self.artifacts)
    }

    /// Returns the value of a context key as JSON, or `None` if the key is not granted or does not exist.
    pub(super) fn context_value(&self, key: &str) -> Option<String> {
        // The guest cannot distinguish a key without a grant from a key that does not exist.
        self.authority.require_access(&AccessRequest::ContextKey(key)).ok()?;
        self.context.get(key).map(ToString::to_string)
    }

    /// Shows a text to the user while the call runs (`output.progress`). The next progress text replaces it.
    pub(super) fn report_progress(&mut self, text: &str) {
        if let Some(text) = self.text_for_user(text) {
            self.context.output().progress(&text);
        }
    }

    /// Sends a permanent message to the user (`output.communicate`).
    pub(super) fn send_message(&mut self, text: &str) {
        if let Some(text) = self.text_for_user(text) {
            self.context.output().communicate(&text);
        }
    }

    /// Sends a log message to the output of the call. Returns whether the output accepts log messages.
    pub(super) fn log_for_user(&mut self, level: LogLevel, text: &str) -> bool {
        if !self.context.output().accepts_log() {
            return false;
        }
        if let Some(text) = self.text_for_user(text) {
            self.context.output().log(level, &self.authority.plugin, &text);
        }
        true
    }

    /// Removes secrets and control characters from a text of the guest, cuts the text to the limits of one text and of the call, and
    /// counts its bytes. Returns `None` if the text is then empty.
    fn text_for_user(&mut self, text: &str) -> Option<String> {
        // The limit of the log also applies to the texts for the user. They are counted separately from the log.
        let bytes_left = self
            .limits
            .log_bytes_max
            .saturating_sub(self.user_text_bytes)
            .min(OUTPUT_BYTES_MAX);
        // Control characters are removed before the redaction, because they could hide a secret. The text is cut after the
        // redaction, because the redaction does not find a part of a secret.
        let redacted = self.authority.redactor.redact_text(&printable(text)).into_owned();
        let mut end = redacted.len().min(bytes_left);
        while !redacted.is_char_boundary(end) {
            end -= 1;
        }
        self.user_text_bytes += end;
        (end > 0).then(|| redacted[..end].to_owned())
    }

    /// Adds an artifact to the result of the call.
    ///
    /// # Errors
    /// A text for the guest: the error of `artifact`, or that the artifacts would exceed their limit.
    pub(super) fn attach(&mut self, artifact: Result<Artifact, String>) -> Result<(), String> {
        let artifact = artifact?;
        // `json_weight` estimates the memory of the value from its JSON text.
        let bytes = (artifact.kind.len() + json_weight(artifact.value.to_string().as_bytes())) as u64;
        let max = self.limits.artifact_bytes_max;
        if self.artifact_memory_bytes.saturating_add(bytes) > max {
            return Err(format!(
                "the artifacts of a call may take at most {} of memory",
                ByteCount(max)
            ));
        }
        self.artifact_memory_bytes += bytes;
        self.artifacts.push(artifact);
        Ok(())
    }

    pub(super) fn blackboard_get(&self, name: &str) -> Option<Artifact> {
        self.require_blackboard(AccessMode::Read).ok()?;
        let entry = self.context.blackboard().ok()?.get(name)?;
        Some(entry.artifact().clone())
    }

    pub(super) fn blackboard_put(
        &self,
        name: Option<String>,
        artifact: impl FnOnce() -> Result<Artifact, String>,
    ) -> Result<(), String> {
        self.require_blackboard(AccessMode::ReadWrite)?;
        let mut artifact = artifact()?;
        // Other plugins read the blackboard, and their redaction does not cover this plugin's secrets.
        let redactor = &self.authority.redactor;
        artifact.kind = redactor.redact_text(&artifact.kind).into_owned();
        redactor.redact_value(&mut artifact.value);
        let name = name.map(|name| redactor.redact_text(&name).into_owned());
        let blackboard = self.context.blackboard().map_err(|error| error.to_string())?;
        blackboard
            .place(name.as_deref(), artifact)
            .map_err(|error| error.to_string())
    }

    pub(super) fn blackboard_list(&self) -> Vec<BlackboardEntry> {
        match (self.require_blackboard(AccessMode::Read), self.context.blackboard()) {
            (Ok(()), Ok(blackboard)) => blackboard.entries(),
            _ => Vec::new(),
        }
    }

    /// Checks the grant of the blackboard, and records a denial for the operator.
    ///
    /// # Errors
    /// The denial, as a text for the guest.
    fn require_blackboard(&self, mode: AccessMode) -> Result<(), String> {
        let request = AccessRequest::Blackboard(mode);
        match self.authority.require_access(&request) {
            Ok(_) => Ok(()),
            Err(denial) => Err(format!("the plugin may not {request}: {}", denial.reason_for_guest())),
        }
    }
}
