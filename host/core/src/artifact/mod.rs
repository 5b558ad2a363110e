//! Objects that tools return in addition to text, and the sinks that collect them.

#[allow(clippy::module_inception, reason = "the module is named after its main type")]
mod artifact;
mod artifact_capture;
mod artifact_sink;
mod asset_tracker;

pub use artifact::Artifact;
pub use artifact_capture::ArtifactCapture;
pub use artifact_sink::{ArtifactSink, BlackboardSink, CompositeSink, ListSink};
pub use asset_tracker::{Asset, AssetTracker};

pub(crate) use artifact_capture::CaptureDecorator;
