//! Capture of artifacts: filters, transforms and a sink.

use std::sync::Arc;

use async_trait::async_trait;

use super::artifact_sink::ArtifactSink;
use crate::{
    Arguments, Artifact, Decorator, Effect, EffectClass, EffectSource, Error, Tool, ToolContext, ToolError, ToolResult,
};

type Filter = dyn Fn(&Artifact) -> bool + Send + Sync;
type Transform = dyn Fn(Artifact) -> Artifact + Send + Sync;

/// Filters and transforms for artifacts, and the sink that receives the transformed artifacts. All filters run before the
/// transforms, whatever the order of the builder calls.
///
/// ```
/// use serde_json::Value;
/// use toolwit_core::{Artifact, BlackboardSink, ArtifactCapture};
///
/// let documents = ArtifactCapture::to(BlackboardSink)
///     .with_kind("SearchResult")
///     .with_filter(|result| result.value["score"].as_f64() > Some(0.5))
///     .with_transform(|result| Artifact::new("Document", result.value["document"].clone()));
/// # let _ = documents;
/// ```
#[derive(Clone)]
pub struct ArtifactCapture {
    sink: Arc<dyn ArtifactSink>,
    filters: Vec<Arc<Filter>>,
    transforms: Vec<Arc<Transform>>,
}

impl ArtifactCapture {
    /// Creates a capture that passes all artifacts unchanged to a sink.
    #[must_use]
    pub fn to(sink: impl ArtifactSink + 'static) -> Self {
        Self {
            sink: Arc::new(sink),
            filters: Vec::new(),
            transforms: Vec::new(),
        }
    }

    /// Captures only artifacts whose type has this full or simple name, as in [`Artifact::is_a`].
    #[must_use]
    pub fn with_kind(self, kind: impl Into<String>) -> Self {
        let kind = kind.into();
        self.with_filter(move |artifact| artifact.is_a(&kind))
    }

    /// Captures only artifacts for which the filter returns `true`.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&Artifact) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Transforms the artifacts that the sink receives. The artifacts in the tool's result do not change.
    #[must_use]
    pub fn with_transform(mut self, transform: impl Fn(Artifact) -> Artifact + Send + Sync + 'static) -> Self {
        self.transforms.push(Arc::new(transform));
        self
    }

    /// Filters and transforms an artifact, and passes it to the sink.
    fn capture(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error> {
        if !self.filters.iter().all(|filter| filter(artifact)) {
            return Ok(());
        }
        let transformed_artifact = self
            .transforms
            .iter()
            .fold(artifact.clone(), |artifact, transform| transform(artifact));
        self.sink.receive(&transformed_artifact, context)
    }
}

/// A decorator that captures the artifacts in the results of a tool.
pub(crate) struct CaptureDecorator(ArtifactCapture);

impl CaptureDecorator {
    pub(crate) fn new(capture: ArtifactCapture) -> Self {
        Self(capture)
    }
}

#[async_trait]
impl Decorator for CaptureDecorator {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let mut result = tool.call(arguments, context).await?;
        for artifact in &result.artifacts {
            if let Err(error) = self.0.capture(artifact, context) {
                tracing::warn!(tool = %tool.definition().id, %error, "an artifact was not stored");
                result
                    .for_llm
                    .push_str(&format!("\n[an artifact was not stored: {error}]"));
            }
        }
        Ok(result)
    }

    fn effect(&self, tool_effect: Effect) -> Effect {
        if self.0.sink.is_within_run() {
            tool_effect
        } else {
            tool_effect.at_least(EffectClass::Write, EffectSource::Operator)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CompositeSink, ListSink};

    fn page(score: u32) -> Artifact {
        Artifact::new("web::Page", json!({ "score": score }))
    }

    // accept: 80
    #[test]
    fn artifacts_are_filtered_then_transformed_then_passed_to_each_sink() {
        let (first, second) = (ListSink::new(), ListSink::new());
        let failing_sink = |_: &Artifact| Err(Error::from(ToolError::invalid_arguments("no room")));
        let sinks = CompositeSink::new()
            .and(first.clone())
            .and(failing_sink)
            .and(second.clone());
        let capture = ArtifactCapture::to(sinks)
            .with_kind("Page")
            .with_filter(|page| page.value["score"].as_u64() > Some(1))
            .with_transform(|page| Artifact::new("Score", page.value["score"].clone()));
        let context = ToolContext::new();
        assert!(capture.capture(&page(1), &context).is_ok());
        assert!(
            capture
                .capture(&Artifact::new("Other", json!({"score": 9})), &context)
                .is_ok()
        );
        assert!(
            capture.capture(&page(2), &context).is_err(),
            "an error of one sink is returned"
        );
        assert_eq!(first.artifacts(), [Artifact::new("Score", json!(2))]);
        assert_eq!(second.artifacts(), first.artifacts());
    }
}
