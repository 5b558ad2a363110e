//! The library's log, on standard error.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::page::{BAD, FAINT, GOOD, Page, WARN};
use crate::output::printer::{Verbosity, write_stderr};

/// Starts logging. The verbosity selects the level of the library's log. Dependencies log warnings and errors at most. The protocol
/// library of MCP logs failures that the error of the call reports, so its log is shown only with `-v`.
/// The layer `telemetry` collects spans.
pub(crate) fn start(verbosity: Verbosity, telemetry: impl Layer<Registry> + Send + Sync) {
    let (library_level, dependency_level) = match verbosity {
        Verbosity::Quiet => (LevelFilter::ERROR, LevelFilter::OFF),
        Verbosity::Normal => (LevelFilter::WARN, LevelFilter::ERROR),
        Verbosity::Verbose => (LevelFilter::INFO, LevelFilter::WARN),
        Verbosity::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
    };
    let protocol_level = match verbosity {
        Verbosity::Quiet | Verbosity::Normal => LevelFilter::OFF,
        Verbosity::Verbose | Verbosity::Debug => dependency_level,
    };
    let filter = Targets::new()
        .with_target("toolwit", library_level)
        .with_target("rmcp", protocol_level)
        .with_default(dependency_level);
    // Fails only if the process already has a logger, which then stays in use.
    let _ = tracing_subscriber::registry()
        .with(telemetry)
        .with(LogLines.with_filter(filter))
        .try_init();
}

/// Prints each event on a line. An event can contain names and paths that a plugin chose. A [`Page`] makes them safe to
/// print.
struct LogLines;

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        write_stderr(&log_line(event));
    }
}

fn log_line(event: &Event<'_>) -> Page {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let level = *event.metadata().level();
    let style = match level {
        Level::ERROR => BAD,
        Level::WARN => WARN,
        Level::INFO => GOOD,
        _ => FAINT,
    };
    let mut page = Page::new();
    page.styled(style, format_args!("{level:>5}")).text(" ");
    page.text(fields.message).text(fields.named_fields).end();
    page
}

/// The fields of an event: its message, and its other fields in the form ` name=value`.
#[derive(Default)]
struct Fields {
    message: String,
    named_fields: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _: fmt::Result = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.named_fields, " {name}={value:?}"),
        };
    }
}
