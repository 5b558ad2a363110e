//! The layer that collects spans.

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::span::{Attributes as NewSpan, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::otlp_span::{Attributes, OpenSpan};

/// The target of the loop's spans.
const SPAN_TARGET: &str = "toolwit::telemetry";

/// The target of the loop's events with content.
const CONTENT_TARGET: &str = "toolwit::content";

/// A layer for `tracing-subscriber` that collects the spans of runs, inferences and tool calls. Other spans and events
/// are ignored.
pub struct OtlpLayer {
    pub(super) span_sender: mpsc::Sender<Value>,
    /// Whether the content of answers, arguments and results is collected.
    pub(super) has_content: bool,
}

impl OtlpLayer {
    /// Returns the layer with a filter. Without it, `tracing` would also format other spans and content that is not
    /// sent.
    #[must_use]
    pub fn filtered<S>(self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let has_content = self.has_content;
        self.with_filter(FilterFn::new(move |metadata: &Metadata<'_>| {
            metadata.target() == SPAN_TARGET || (has_content && metadata.target() == CONTENT_TARGET)
        }))
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for OtlpLayer {
    fn on_new_span(&self, new: &NewSpan<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| new.metadata().target() == SPAN_TARGET) else {
            return;
        };
        let parent = span.scope().skip(1).find_map(|outer| {
            let extensions = outer.extensions();
            let open = extensions.get::<OpenSpan>()?;
            Some((open.trace.clone(), open.id.clone()))
        });
        let mut attributes = Attributes::default();
        new.record(&mut attributes);
        let open = OpenSpan::new(new.metadata().name(), parent, attributes);
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.attributes);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !self.has_content || event.metadata().target() != CONTENT_TARGET {
            return;
        }
        let Some(span) = context.event_span(event) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            event.record(&mut open.attributes);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let open = span.extensions_mut().remove::<OpenSpan>();
        // If the queue of the exporter is full, the span is dropped: the run never waits.
        if let Some(open) = open {
            let _ = self.span_sender.try_send(open.end());
        }
    }
}
