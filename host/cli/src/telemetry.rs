//! Export of spans to an OpenTelemetry collector. The environment variables of OpenTelemetry configure the export.

#[cfg(feature = "otlp")]
pub(crate) use enabled::from_environment;

#[cfg(not(feature = "otlp"))]
pub(crate) use disabled::from_environment;

#[cfg(feature = "otlp")]
mod enabled {
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::Layer;

    use crate::input::environment::variable;
    use toolwit::Error;
    use toolwit::telemetry::{OtlpExporter, OtlpOptions, exporter};

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    const SERVICE: &str = "OTEL_SERVICE_NAME";
    const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

    /// The exporter of the spans of a command. `None` if the environment names no endpoint.
    pub(crate) struct Telemetry(Option<OtlpExporter>);

    /// Creates the layer that collects spans, and the exporter. Both do nothing if the environment names no endpoint.
    pub(crate) fn from_environment() -> Result<(impl Layer<Registry> + Send + Sync, Telemetry), Error> {
        let Some(endpoint) = variable(ENDPOINT).and_then(|endpoint| endpoint.into_string().ok()) else {
            return Ok((None, Telemetry(None)));
        };
        let mut options = OtlpOptions::new(endpoint);
        let utf8_variable = |name| variable(name).and_then(|value| value.into_string().ok());
        if let Some(name) = utf8_variable(SERVICE) {
            options = options.with_service_name(name);
        }
        if utf8_variable(CONTENT).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            options = options.with_content();
        }
        for header in utf8_variable(HEADERS).unwrap_or_default().split(',') {
            if let Some((name, value)) = header.split_once('=') {
                options = options.with_header(name.trim(), value.trim());
            }
        }
        let (layer, exporter) = exporter(options)?;
        Ok((Some(layer.with_telemetry_filter()), Telemetry(Some(exporter))))
    }

    impl Telemetry {
        /// Runs a command, and sends the spans that it opened to the collector.
        pub(crate) async fn export_spans_of<T>(self, command: impl Future<Output = T>) -> T {
            let running_exporter = self.0.map(OtlpExporter::spawn);
            let output = command.await;
            if let Some(running_exporter) = running_exporter {
                running_exporter.shutdown().await;
            }
            output
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod disabled {
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::{Identity, Layer};

    use toolwit::Error;

    /// The replacement of the exporter without the feature `otlp`. Exports nothing.
    pub(crate) struct Telemetry;

    #[allow(
        clippy::unnecessary_wraps,
        reason = "with the feature `otlp`, this function can fail"
    )]
    pub(crate) fn from_environment() -> Result<(impl Layer<Registry> + Send + Sync, Telemetry), Error> {
        Ok((Identity::new(), Telemetry))
    }

    impl Telemetry {
        pub(crate) async fn export_spans_of<T>(self, command: impl Future<Output = T>) -> T {
            command.await
        }
    }
}
