//! The types of `toolwit:plugin`, with their conversions from and to the types of `toolwit_core`.

use wasmtime::component::{ComponentType, Lift, Lower};

use toolwit_core::limits::{ARTIFACT_WEIGHT_MAX, ByteCount};
use toolwit_core::text::{json_weight, parse_json};
use toolwit_core::{Artifact, BlackboardEntry, ErrorKind, ToolError, ToolResult};

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct WitArtifact {
    kind: String,
    /// The value as JSON text.
    value: String,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct WitBlackboardEntry {
    name: Option<String>,
    artifact: WitArtifact,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct WitToolResult {
    #[component(name = "for-llm")]
    for_llm: String,
    #[component(name = "for-user")]
    for_user: Option<String>,
    silent: bool,
    #[component(name = "is-error")]
    is_error: bool,
    artifacts: Vec<WitArtifact>,
    background: Option<WitBackgroundCall>,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct WitBackgroundCall {
    tool: String,
    arguments: String,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum WitToolError {
    #[component(name = "invalid-arguments")]
    InvalidArguments(String),
    #[component(name = "unavailable")]
    Unavailable(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "limit")]
    Limit(String),
    #[component(name = "failed")]
    Failed(String),
}

impl WitArtifact {
    /// Converts the artifact, and parses its value as JSON.
    ///
    /// # Errors
    /// A text for the guest, if the value is not JSON or would take too much memory when it is parsed.
    pub(super) fn parse(&self) -> Result<Artifact, String> {
        if json_weight(self.value.as_bytes()) > ARTIFACT_WEIGHT_MAX {
            return Err(format!(
                "the value of the artifact would take more than {} when it is parsed",
                ByteCount(ARTIFACT_WEIGHT_MAX as u64)
            ));
        }
        let value =
            parse_json(&self.value).map_err(|error| format!("the value of the artifact is not JSON: {error}"))?;
        Ok(Artifact::new(&*self.kind, value))
    }
}

impl From<&Artifact> for WitArtifact {
    fn from(artifact: &Artifact) -> Self {
        Self {
            kind: artifact.kind.to_string(),
            value: artifact.value.to_string(),
        }
    }
}

impl From<&BlackboardEntry> for WitBlackboardEntry {
    fn from(entry: &BlackboardEntry) -> Self {
        Self {
            name: entry.name().map(str::to_owned),
            artifact: entry.artifact().into(),
        }
    }
}

impl From<ToolResult> for WitToolResult {
    fn from(result: ToolResult) -> Self {
        Self {
            for_llm: result.content().to_string(),
            silent: result.is_silent(),
            is_error: result.is_error(),
            for_user: result.for_user,
            artifacts: result.artifacts.iter().map(WitArtifact::from).collect(),
            // A follow-up call that the tool requested has already run.
            background: None,
        }
    }
}

impl From<ToolError> for WitToolError {
    fn from(error: ToolError) -> Self {
        let report = error.report();
        let text = report.to_string();
        match report.kind {
            ErrorKind::InvalidArguments => Self::InvalidArguments(text),
            ErrorKind::UnknownTool | ErrorKind::AmbiguousTool | ErrorKind::ToolUnavailable => Self::Unavailable(text),
            ErrorKind::Denied => Self::Denied(text),
            kind if kind.is_limit() => Self::Limit(text),
            _ => Self::Failed(text),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_with_too_many_values_is_refused_and_a_long_text_is_not() {
        let artifact = |value: String| WitArtifact {
            kind: "k".to_owned(),
            value,
        };
        assert!(artifact(format!("[{}1]", "1,".repeat(1 << 20))).parse().is_err());
        assert!(artifact(format!("\"{}\"", "1,[{\\\"".repeat(1 << 20))).parse().is_ok());
    }
}
