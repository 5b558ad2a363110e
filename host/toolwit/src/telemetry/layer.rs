//! The layer that collects spans.

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::span::{Attributes as NewSpan, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::otlp_span::{Attributes, OpenSpan};

/// The `tracing` target of the spans of the agent loop.
const SPAN_TARGET: &str = "toolwit::telemetry";

/// The `tracing` target of the events with which the agent loop reports content.
const CONTENT_TARGET: &str = "toolwit::content";

/// A layer for `tracing-subscriber` that collects the spans of runs, inferences and tool calls. Other spans and events
/// are ignored.
pub struct OtlpLayer {
    pub(super) span_sender: mpsc::Sender<Value>,
    /// Whether the content of answers, arguments and results is collected.
    pub(super) is_content_collected: bool,
}

impl OtlpLayer {
    /// Adds a filter that passes only the spans and events that the layer collects. Without the filter, `tracing` would also
    /// format other spans, and content that the layer ignores.
    #[must_use]
    pub fn with_telemetry_filter<S>(self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let is_content_collected = self.is_content_collected;
        self.with_filter(FilterFn::new(move |metadata: &Metadata<'_>| {
            metadata.target() == SPAN_TARGET || (is_content_collected && metadata.target() == CONTENT_TARGET)
        }))
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for OtlpLayer {
    fn on_new_span(&self, new_span: &NewSpan<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| new_span.metadata().target() == SPAN_TARGET) else {
            return;
        };
        let parent = span.scope().skip(1).find_map(|outer| {
            let extensions = outer.extensions();
            let outer_span = extensions.get::<OpenSpan>()?;
            Some((outer_span.trace_id.clone(), outer_span.id.clone()))
        });
        let mut attributes = Attributes::default();
        new_span.record(&mut attributes);
        let open_span = OpenSpan::new(new_span.metadata().name(), parent, attributes);
        span.extensions_mut().insert(open_span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open_span) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open_span.attributes);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !self.is_content_collected || event.metadata().target() != CONTENT_TARGET {
            return;
        }
        let Some(span) = context.event_span(event) else { return };
        if let Some(open_span) = span.extensions_mut().get_mut::<OpenSpan>() {
            event.record(&mut open_span.attributes);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let open_span = span.extensions_mut().remove::<OpenSpan>();
        // If the queue of the exporter is full, the span is dropped, so that a run never waits for the exporter.
        if let Some(open_span) = open_span {
            let _ = self.span_sender.try_send(open_span.end());
        }
    }
}
