//! The artifacts of calls in journals and traces.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::Artifact;
use toolwit_core::limits::RECORDED_ARTIFACTS_BYTES_MAX;
use toolwit_core::text::{json_len, sha256};

/// An artifact of a result, with its value or, if that is too large, the size and the digest of the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedArtifact {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value; null if the value is omitted.
    pub value: Value,
    /// The size and the digest of the value, if it is omitted because it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<OmittedValue>,
}

/// A value that was too large to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OmittedValue {
    /// The size of its JSON, in bytes.
    pub bytes: u64,
    /// The SHA-256 of its JSON, in hex.
    pub sha256: String,
}

impl OmittedValue {
    /// Returns the size and the digest of a value that is larger than the remaining bytes. Otherwise, subtracts the size of the
    /// value from the remaining bytes and returns `None`.
    fn of_larger_value(remaining_bytes: &mut usize, value: &Value) -> Option<Self> {
        let bytes = json_len(value);
        if let Some(difference) = remaining_bytes.checked_sub(bytes) {
            *remaining_bytes = difference;
            return None;
        }
        Some(Self {
            bytes: bytes as u64,
            sha256: sha256(&value.to_string()),
        })
    }
}

impl RecordedArtifact {
    /// Records the artifacts of a result. Omits each value with which the total size of the recorded values would exceed
    /// [`RECORDED_ARTIFACTS_BYTES_MAX`].
    pub(super) fn record_all(artifacts: &[Artifact]) -> Vec<Self> {
        let mut remaining_bytes = RECORDED_ARTIFACTS_BYTES_MAX;
        let record = |artifact: &Artifact| {
            let omitted = OmittedValue::of_larger_value(&mut remaining_bytes, &artifact.value);
            Self {
                kind: artifact.kind.clone(),
                value: if omitted.is_some() {
                    Value::Null
                } else {
                    artifact.value.clone()
                },
                omitted,
            }
        };
        artifacts.iter().map(record).collect()
    }

    /// Omits the value if its JSON is larger than the remaining bytes. Otherwise, subtracts its size from the remaining bytes.
    pub(super) fn omit_beyond(&mut self, remaining_bytes: &mut usize) {
        if self.omitted.is_some() {
            return;
        }
        self.omitted = OmittedValue::of_larger_value(remaining_bytes, &self.value);
        if self.omitted.is_some() {
            self.value = Value::Null;
        }
    }

    /// Returns the artifact. If its value is omitted, logs a warning and returns `None`.
    pub(super) fn into_artifact(self) -> Option<Artifact> {
        if let Some(OmittedValue { bytes, .. }) = self.omitted {
            tracing::warn!(artifact = self.kind, bytes, "an artifact was too large to be recorded");
            return None;
        }
        Some(Artifact::new(self.kind, self.value))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::event::RecordedOutcome;
    use toolwit_core::ToolResult;

    fn artifact(kind: &str, bytes: usize) -> Artifact {
        Artifact::new(kind, "x".repeat(bytes).into())
    }

    // attack: B21
    #[test]
    fn size_and_digest_are_recorded_in_place_of_large_artifacts() {
        let half = RECORDED_ARTIFACTS_BYTES_MAX / 2;
        let result = ToolResult::text("three files")
            .with_artifact(artifact("first", half))
            .with_artifact(artifact("large", 16 << 20))
            .with_artifact(artifact("second", half - 10));
        let recorded = RecordedOutcome::of(&result);
        let line = serde_json::to_string(&recorded).unwrap();
        assert!(line.len() < RECORDED_ARTIFACTS_BYTES_MAX + 1000, "{}", line.len());
        let omitted = recorded.artifacts[1].omitted.clone().unwrap();
        assert_eq!(omitted.bytes, (16 << 20) + 2);
        assert_eq!(omitted.sha256, sha256(&result.artifacts[1].value.to_string()));

        let parsed: RecordedOutcome = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed, recorded);
        let restored = parsed.into_result();
        let kinds: Vec<_> = restored
            .artifacts
            .iter()
            .map(|artifact| artifact.kind.as_str())
            .collect();
        assert_eq!(kinds, ["first", "second"]);
        assert_eq!(restored.artifacts[0].value, result.artifacts[0].value);
    }

    // attack: B21
    #[test]
    fn artifacts_of_a_run_are_limited_in_total() {
        let mut remaining_bytes = 100;
        let result = ToolResult::text("").with_artifact(artifact("file", 50));
        let mut first = RecordedOutcome::of(&result);
        first.omit_artifacts_beyond(&mut remaining_bytes);
        assert!(first.artifacts[0].omitted.is_none() && first.omission().is_none());
        let mut second = RecordedOutcome::of(&result);
        second.omit_artifacts_beyond(&mut remaining_bytes);
        assert_eq!(
            (second.artifacts[0].omitted.as_ref().unwrap().bytes, remaining_bytes),
            (52, 48)
        );
        let omission = second.omission().unwrap();
        assert!(omission.contains("`file` (52 bytes)"), "{omission}");
    }

    #[test]
    fn small_artifacts_are_recorded_with_their_values() {
        let result = ToolResult::text("a page").with_artifact(Artifact::new("Page", serde_json::json!({"n": 1})));
        let line = serde_json::to_value(RecordedOutcome::of(&result)).unwrap();
        assert_eq!(
            line["artifacts"],
            serde_json::json!([{"type": "Page", "value": {"n": 1}}])
        );
    }
}
