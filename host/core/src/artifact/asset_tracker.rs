//! Artifacts with an id, collected for the user interface of an application.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::text::id_text;
use crate::{Artifact, ArtifactCapture, DecoratedTool, Tool, ToolExt};

/// Maximum number of assets in a tracker, far more than a person views. If there are more, the oldest asset is removed.
const ASSETS_MAX: usize = 1_000;

/// An artifact with an id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Asset {
    /// The `id` in the JSON of the artifact.
    pub id: String,
    /// The artifact.
    #[serde(flatten)]
    pub artifact: Artifact,
}

/// Collects the assets that tools return: artifacts whose value has an `id`. Clones share the collection.
///
/// An asset replaces an earlier asset with the same id and type, and becomes the newest asset.
///
/// ```
/// use toolwit_core::{AssetTracker, Tool};
///
/// # fn example(compose: impl Tool + 'static) -> impl Tool {
/// let assets = AssetTracker::new();
/// let compose = assets.track_tool(compose, |asset| asset.artifact.is_a("Concert"));
/// # compose }
/// ```
#[derive(Clone, Debug, Default)]
pub struct AssetTracker {
    assets: Arc<Mutex<VecDeque<Asset>>>,
}

impl AssetTracker {
    /// Creates an empty tracker.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decorates a tool. The tracker collects the assets in the tool's results for which the filter returns `true`.
    #[must_use]
    pub fn track_tool(
        &self,
        tool: impl Tool + 'static,
        filter: impl Fn(&Asset) -> bool + Send + Sync + 'static,
    ) -> DecoratedTool {
        let tracker = self.clone();
        tool.capture_artifacts(ArtifactCapture::to(move |artifact: &Artifact| {
            if let Some(asset) = asset_of(artifact).filter(|asset| filter(asset)) {
                tracker.add(asset);
            }
            Ok(())
        }))
    }

    /// Decorates several tools, as [`track_tool`](Self::track_tool) does.
    #[must_use]
    pub fn track_tools(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        filter: impl Fn(&Asset) -> bool + Send + Sync + 'static,
    ) -> Vec<Arc<dyn Tool>> {
        let filter = Arc::new(filter);
        tools
            .into_iter()
            .map(|tool| {
                let filter = filter.clone();
                let tracked_tool = self.track_tool(tool, move |asset| filter(asset));
                Arc::new(tracked_tool) as Arc<dyn Tool>
            })
            .collect()
    }

    /// Adds an asset, or replaces an earlier asset with the same id and type.
    pub fn add(&self, asset: Asset) {
        let mut assets = self.lock();
        assets.retain(|earlier| earlier.id != asset.id || earlier.artifact.kind != asset.artifact.kind);
        assets.push_back(asset);
        if assets.len() > ASSETS_MAX {
            assets.pop_front();
        }
    }

    /// Returns the assets, newest last.
    #[must_use]
    pub fn assets(&self) -> Vec<Asset> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Asset>> {
        self.assets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the artifact as an asset. Returns `None` if the artifact's JSON has no `id` that is a string or a number.
fn asset_of(artifact: &Artifact) -> Option<Asset> {
    let id = id_text(artifact.value.get("id")?)?;
    let artifact = artifact.clone();
    Some(Asset { id, artifact })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Arguments, NativeTool, ToolContext, ToolResult};

    /// Returns a tool whose result has one `Concert` for each number of works. The id of a concert is its index.
    fn compose_tool(work_counts: &'static [u32]) -> Arc<dyn Tool> {
        let tool = NativeTool::new("compose", "", json!({"type": "object"}), move |_, _| async move {
            let counts = work_counts.iter().enumerate();
            Ok(counts.fold(ToolResult::text("composed"), |result, (id, work_count)| {
                result.with_artifact(Artifact::new("Concert", json!({"id": id, "works": work_count})))
            }))
        });
        Arc::new(tool.unwrap())
    }

    fn ids(tracker: &AssetTracker) -> Vec<String> {
        tracker.assets().into_iter().map(|asset| asset.id).collect()
    }

    // accept: 81
    #[tokio::test]
    async fn assets_that_pass_the_filter_are_collected_once_per_id() {
        let tracker = AssetTracker::new();
        let is_long = |asset: &Asset| asset.artifact.value["works"].as_u64() >= Some(3);
        let tool = tracker.track_tool(compose_tool(&[3, 1, 4]), is_long);
        for _ in 0..2 {
            let result = tool.call(Arguments::new(), &ToolContext::new()).await.unwrap();
            assert_eq!(result.artifacts.len(), 3, "the result keeps all artifacts");
        }
        assert_eq!(ids(&tracker), ["0", "2"]);
    }

    // accept: 81
    #[tokio::test]
    async fn several_tools_are_tracked_and_artifacts_without_id_are_ignored() {
        let tracker = AssetTracker::new();
        let note_tool = NativeTool::new("take_note", "", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text("").with_artifact(Artifact::new("Note", json!("hm"))))
        });
        let tools = [compose_tool(&[1]), Arc::new(note_tool.unwrap())];
        for tool in tracker.track_tools(tools, |_| true) {
            tool.call(Arguments::new(), &ToolContext::new()).await.unwrap();
        }
        assert_eq!(ids(&tracker), ["0"]);
    }
}
