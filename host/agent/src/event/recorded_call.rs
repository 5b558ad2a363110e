//! The records of calls in events. After a crash, they determine how a call is continued.

use serde::{Deserialize, Serialize};

use super::recorded_artifact::RecordedArtifact;
use super::recorded_error::RecordedError;
use toolwit_core::{Arguments, DeniedAccess, Effect, Error, ErrorKind, Signal, ToolError, ToolResult, ToolStatus};

/// A decision about an interrupted call that may or may not have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// The call took effect. The model is informed of this, but the result of the call is lost.
    Done,
    /// The call had no effect. The model is informed of this, and may call again.
    NotDone,
    /// The call runs again.
    RunAgain,
}

/// The start of a call, as a journal records it before the call can have an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedStart {
    /// The digest of the tool's definition, to detect a later change.
    #[serde(rename = "definition")]
    pub definition_digest: String,
    /// The arguments with which the call runs, without the secrets of its plugin.
    pub arguments: Arguments,
    /// The effect class at the start of the call.
    pub effect: Effect,
    /// The idempotency key, which the tool finds in its context under [`IDEMPOTENCY_KEY`](crate::IDEMPOTENCY_KEY).
    pub key: String,
    /// Whether the arguments differ from those that the model wrote.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_edited: bool,
    /// Whether secrets were removed from the arguments, so that the call cannot be replayed from the journal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_redacted: bool,
    /// The rules of the grant that the call can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<String>,
    /// The digest of the code of the tool, if it is known.
    #[serde(rename = "code", default, skip_serializing_if = "Option::is_none")]
    pub code_digest: Option<String>,
}

impl RecordedStart {
    /// Describes the start of a call without a grant, whose arguments are those of the model and have no secrets.
    #[must_use]
    pub fn new(
        definition_digest: impl Into<String>,
        arguments: Arguments,
        effect: Effect,
        key: impl Into<String>,
    ) -> Self {
        Self {
            definition_digest: definition_digest.into(),
            arguments,
            effect,
            key: key.into(),
            is_edited: false,
            is_redacted: false,
            grant: Vec::new(),
            code_digest: None,
        }
    }
}

/// The full outcome of a call, before strategies and limits change the text for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedOutcome {
    /// The text for the model.
    pub text: String,
    /// The text for the user; `None` for a silent result, and for a result without a text for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_text: Option<String>,
    /// Whether the call failed.
    pub is_error: bool,
    /// The kind of error, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The error that only the operator can fix, if the call failed with one. It ends the run. Journals of earlier versions have
    /// its details in `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_error: Option<RecordedError>,
    /// Whether the result ends the run as its answer.
    #[serde(skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// Whether the call continued in the background and was to deliver its result later.
    #[serde(skip_serializing_if = "is_false")]
    pub is_pending: bool,
    /// The artifacts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<RecordedArtifact>,
    /// The signal to the run, such as a question to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// The denied accesses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedAccess>,
    /// Whether the result had live objects. Live objects are not recorded, because they exist only in the memory of their
    /// operating-system process.
    #[serde(skip_serializing_if = "is_false")]
    pub has_entities: bool,
    /// The accesses that grants allowed during the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<String>,
    /// The resources that the call used, if they were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RecordedUsage>,
}

/// The resources that a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedUsage {
    /// The fuel that the guest consumed.
    pub fuel: u64,
    /// The peak memory of the instance, in bytes.
    pub memory_bytes: u64,
}

impl RecordedOutcome {
    /// Records the result of a tool.
    #[must_use]
    pub fn of(result: &ToolResult) -> Self {
        Self {
            text: result.for_llm.clone(),
            user_text: result.user_text().map(str::to_owned),
            is_error: result.is_error(),
            kind: result.is_error().then_some(ErrorKind::Tool),
            operator_error: None,
            is_final: result.is_final(),
            is_pending: result.is_pending(),
            artifacts: RecordedArtifact::record_all(&result.artifacts),
            signal: result.signal.clone(),
            denied: result.denied.clone(),
            has_entities: !result.providers.is_empty(),
            accesses: result.accesses.clone(),
            usage: result.usage.map(|usage| RecordedUsage {
                fuel: usage.fuel,
                memory_bytes: usage.memory_bytes,
            }),
        }
    }

    /// Records a failure.
    #[must_use]
    pub fn failed(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
            kind: Some(kind),
            ..Self::default()
        }
    }

    /// Records an error that only the operator can fix. `text` is for the model and has no details of the error.
    pub(crate) fn failed_for_operator(error: &Error, text: impl Into<String>) -> Self {
        Self {
            operator_error: Some(RecordedError::of(error)),
            denied: error.denied.clone(),
            ..Self::failed(error.kind, text)
        }
    }

    /// Omits each artifact value that is larger than the remaining bytes. Subtracts the sizes of the other values from the
    /// remaining bytes.
    pub(crate) fn omit_artifacts_beyond(&mut self, remaining_bytes: &mut usize) {
        self.artifacts
            .iter_mut()
            .for_each(|artifact| artifact.omit_beyond(remaining_bytes));
    }

    /// Returns a sentence that lists the artifacts that were too large to be recorded, or `None` if all were recorded.
    #[must_use]
    pub fn omission(&self) -> Option<String> {
        let descriptions = self.artifacts.iter().filter_map(|artifact| {
            let bytes = artifact.omitted.as_ref()?.bytes;
            Some(format!("`{}` ({bytes} bytes)", artifact.kind))
        });
        let descriptions: Vec<_> = descriptions.collect();
        let list = descriptions.join(", ");
        (!descriptions.is_empty()).then(|| format!("these artifacts of the result were too large to be stored: {list}"))
    }

    /// Returns the result that [`into_result`](Self::into_result) returns, or the error that ends the run.
    ///
    /// # Errors
    /// [`ToolError::Operator`] if the call failed with an error that only the operator can fix.
    pub fn into_call_result(mut self) -> Result<ToolResult, ToolError> {
        match self.operator_error.take() {
            Some(error) => {
                let kind = self.kind.unwrap_or(ErrorKind::Tool);
                Err(ToolError::Operator(error.into_error(kind, self.denied)))
            }
            None => Ok(self.into_result()),
        }
    }

    /// Returns the result, without live objects and without artifacts that were too large to be recorded. For a call that
    /// continued in the background, returns an error, because its work ended with its operating-system process.
    #[must_use]
    pub fn into_result(self) -> ToolResult {
        if self.is_pending {
            return ToolResult::error(
                "the background work ended with the process that ran it; it may have taken effect",
            );
        }
        let mut result = ToolResult::text(self.text);
        if self.is_error {
            result.status = ToolStatus::Error;
        }
        result.for_user = self.user_text;
        result.artifacts = self
            .artifacts
            .into_iter()
            .filter_map(RecordedArtifact::into_artifact)
            .collect();
        result.signal = self.signal;
        result.denied = self.denied;
        result.accesses = self.accesses;
        if self.is_final { result.as_answer() } else { result }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
