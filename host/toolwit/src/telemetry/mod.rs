//! Telemetry: spans of runs, inferences and tool calls for an OpenTelemetry collector.
//!
//! The agent loop opens `tracing` spans with the names of OpenTelemetry's semantic conventions for generative AI:
//! `invoke_agent`, `chat` and `execute_tool`. [`OtlpLayer`] collects these spans, and [`OtlpExporter`] sends them to a
//! collector as JSON over HTTP, so that no OpenTelemetry library is necessary. The content of answers, arguments and
//! results is not sent unless [`OtlpOptions::with_content`] is set.
//!
//! ```
//! use toolwit::telemetry::{OtlpOptions, exporter};
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # async fn example() -> Result<(), toolwit::Error> {
//! let (layer, exporter) = exporter(OtlpOptions::new("http://localhost:4318"))?;
//! let subscriber = tracing_subscriber::registry().with(layer.with_telemetry_filter());
//! // tracing::subscriber::set_global_default(subscriber)
//! # let _ = subscriber;
//! let exporter = exporter.spawn();
//! // … runs
//! exporter.shutdown().await;
//! # Ok(()) }
//! ```

mod export;
mod layer;
mod otlp_span;

pub use export::{OtlpExporter, OtlpOptions, RunningExporter, exporter};
pub use layer::OtlpLayer;
