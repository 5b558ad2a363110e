//! Export of spans to an OpenTelemetry collector, with the environment variables of OpenTelemetry.

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

    /// The exporter of a command. `None` if the environment has no endpoint.
    pub(crate) struct Telemetry(Option<OtlpExporter>);

    /// Creates the layer and the exporter that the environment describes.
    pub(crate) fn from_environment() -> Result<(impl Layer<Registry> + Send + Sync, Telemetry), Error> {
        let Some(endpoint) = variable(ENDPOINT).and_then(|endpoint| endpoint.into_string().ok()) else {
            return Ok((None, Telemetry(None)));
        };
        let mut options = OtlpOptions::new(endpoint);
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        if let Some(name) = text(SERVICE) {
            options = options.with_service_name(name);
        }
        if text(CONTENT).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            options = options.with_content();
        }
        for header in text(HEADERS).unwrap_or_default().split(',') {
            if let Some((name, value)) = header.split_once('=') {
                options = options.with_header(name.trim(), value.trim());
            }
        }
        let (layer, exporter) = exporter(options)?;
        Ok((Some(layer.filtered()), Telemetry(Some(exporter))))
    }

    impl Telemetry {
        /// Runs a command, and sends the spans that it opened.
        pub(crate) async fn around<T>(self, command: impl Future<Output = T>) -> T {
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

    /// The exporter without the feature `otlp`, which exports nothing.
    pub(crate) struct Telemetry;

    #[allow(clippy::unnecessary_wraps, reason = "the exporter can fail")]
    pub(crate) fn from_environment() -> Result<(impl Layer<Registry> + Send + Sync, Telemetry), Error> {
        Ok((Identity::new(), Telemetry))
    }

    impl Telemetry {
        pub(crate) async fn around<T>(self, command: impl Future<Output = T>) -> T {
            command.await
        }
    }
}
