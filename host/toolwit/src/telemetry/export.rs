//! The exporter, which sends spans to a collector.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::layer::OtlpLayer;
use toolwit_core::limits::CONNECT_WALL_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_http::{Encryption, client_builder, is_loopback};

/// Maximum number of spans that are queued for sending. Further spans are dropped.
const QUEUED_SPANS_MAX: usize = 2048;

/// Maximum number of spans in a request.
const BATCH_SPANS_MAX: usize = 256;

/// Maximum time of a request.
const REQUEST_WALL_MAX: Duration = Duration::from_secs(5);

/// The options of an exporter.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    endpoint: String,
    headers: Vec<(String, String)>,
    service_name: String,
    /// Whether the content of answers, arguments and results is sent too.
    is_content_sent: bool,
}

impl OtlpOptions {
    /// Creates options with the base URL of the collector. The exporter appends `/v1/traces`.
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            service_name: "toolwit".to_owned(),
            is_content_sent: false,
        }
    }

    /// Adds a header to each request, such as an API key of the collector.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the resource attribute `service.name` of the spans. The default is `toolwit`.
    #[must_use]
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = name.into();
        self
    }

    /// Also sends the content of answers, arguments and results. By default, this content is not sent.
    #[must_use]
    pub fn with_content(mut self) -> Self {
        self.is_content_sent = true;
        self
    }
}

/// Creates a layer that collects spans, and the exporter that sends them.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the endpoint is not a URL, if a header is invalid, if headers would be sent to another
/// machine over plain HTTP, or if TLS cannot be configured.
pub fn exporter(options: OtlpOptions) -> Result<(OtlpLayer, OtlpExporter), Error> {
    let export_error = |why: String| {
        let message = format!("telemetry cannot be exported: {why}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
    };
    let endpoint = options.endpoint.trim_end_matches('/');
    let url = Url::parse(&format!("{endpoint}/v1/traces"))
        .map_err(|error| export_error(format!("the endpoint is not a URL: {error}")))?;
    if !options.headers.is_empty() && url.scheme() != "https" && !is_loopback(&url) {
        let host = url.host_str().unwrap_or_default();
        let why = format!("the headers would be sent to `{host}` over plain HTTP, where others can read them");
        return Err(export_error(why).with_suggestion("use an `https` endpoint, or remove the headers"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|error| export_error(error.to_string()))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|error| export_error(error.to_string()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let client = client_builder(Encryption::of_scheme(url.scheme()))
        .map_err(|error| export_error(error.to_string()))?
        .default_headers(headers)
        .connect_timeout(CONNECT_WALL_MAX)
        .timeout(REQUEST_WALL_MAX)
        .build()
        .map_err(|error| export_error(error.to_string()))?;
    let (span_sender, span_receiver) = mpsc::channel(QUEUED_SPANS_MAX);
    let layer = OtlpLayer {
        span_sender,
        is_content_collected: options.is_content_sent,
    };
    let exporter = OtlpExporter {
        client,
        url,
        service_name: options.service_name,
        span_receiver,
    };
    Ok((layer, exporter))
}

/// Sends spans to a collector.
pub struct OtlpExporter {
    client: Client,
    url: Url,
    service_name: String,
    span_receiver: mpsc::Receiver<Value>,
}

/// A running exporter. Dropping the value stops the exporter in the background, after it has sent the collected spans.
/// [`shutdown`](Self::shutdown) waits until the exporter has stopped, for at most five seconds.
pub struct RunningExporter {
    stop_guard: DropGuard,
    task: JoinHandle<()>,
}

impl OtlpExporter {
    /// Starts the exporter as a task of the current tokio runtime.
    #[must_use]
    pub fn spawn(self) -> RunningExporter {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.run(stop.clone()));
        RunningExporter {
            stop_guard: stop.drop_guard(),
            task,
        }
    }

    /// Sends spans until the layer is dropped, or until `stop` is cancelled and all collected spans are sent.
    async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let received_count = tokio::select! {
                biased;
                count = self.span_receiver.recv_many(&mut batch, BATCH_SPANS_MAX) => count,
                // `biased` polls the receiver first, so this branch runs only if no collected span is left.
                () = stop.cancelled() => 0,
            };
            if received_count == 0 {
                return;
            }
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    async fn send(&self, spans: Vec<Value>) {
        let service = json!({"key": "service.name", "value": {"stringValue": self.service_name}});
        let scope = json!({"name": "toolwit", "version": env!("CARGO_PKG_VERSION")});
        let request = json!({"resourceSpans": [{
            "resource": {"attributes": [service]},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]});
        let response = self.client.post(self.url.clone()).json(&request).send().await;
        if let Err(error) = response.and_then(reqwest::Response::error_for_status) {
            tracing::warn!(error = %error.without_url(), "spans were not exported");
        }
    }
}

impl RunningExporter {
    /// Stops the exporter, and waits until it has sent the collected spans, for at most five seconds.
    pub async fn shutdown(self) {
        drop(self.stop_guard);
        let _ = tokio::time::timeout(REQUEST_WALL_MAX, self.task).await;
    }
}
