//! The endpoint of a provider to which requests are sent.

use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};

use super::address::{EndpointAddress, PlainHttp};
use super::extra_header::ExtraHeader;
use super::failure::AttemptFailure;
use super::http_response::HttpResponse;
use super::key::{KeyHeader, KeySource};
use super::provider_error::ProviderError;
use super::proxy::ModelProxy;
use super::retry::{RetryPolicy, retry_advice, retry_after};
use super::secret::Secret;
use crate::environment::variable;
use toolwit_agent::model::ModelError;
use toolwit_http::{Encryption, TlsError, client_builder};

/// The maximum number of bytes that are read from the body of an error response. A usual error message is much shorter.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The maximum duration of a streamed response, unless the request timeout is longer. Without this limit, a provider could
/// keep a stream open forever by sending small pieces.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// The maximum time for a complete response. For a streamed response, the maximum time until its headers, and then until
    /// each piece.
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// The maximum time without a further event after the stream of a response is complete. Some servers then send neither an
    /// end mark nor the end of the body.
    pub(crate) end_timeout: Duration,
    pub(crate) response_bytes_max: usize,
    pub(crate) retry: RetryPolicy,
}

/// The way in which a response arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseMode {
    /// In pieces, while the model produces it.
    #[default]
    Streaming,
    /// At once, when it is complete.
    Complete,
}

/// The key of a provider, the header that carries the key, and the hosts to which it may be sent over plain HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    pub(crate) key: Option<KeySource>,
    pub(crate) header: KeyHeader,
    pub(crate) plain_http: PlainHttp,
}

/// The options of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct EndpointOptions {
    pub(crate) authentication: Authentication,
    /// The headers that the API requires in addition to the key header.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The headers that the user adds.
    pub(crate) extra_headers: Vec<ExtraHeader>,
    pub(crate) proxy: ModelProxy,
    pub(crate) mode: ResponseMode,
    pub(crate) limits: RequestLimits,
}

/// An endpoint that accepts JSON by POST.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    client: Client,
    address: EndpointAddress,
    authentication: Authentication,
    extra_headers: Vec<ExtraHeader>,
    mode: ResponseMode,
    limits: RequestLimits,
}

impl Endpoint {
    /// Creates an endpoint. It does not follow redirects or decompress bodies.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the current key or an extra header must not be sent to this address or is not a valid
    /// header value, if the proxy is not valid, or if the HTTP client cannot be created.
    pub(crate) fn new(address: EndpointAddress, options: EndpointOptions) -> Result<Self, ModelError> {
        let EndpointOptions {
            authentication,
            headers,
            extra_headers,
            proxy,
            mode,
            limits,
        } = options;
        let accepted_types = match mode {
            ResponseMode::Streaming => "text/event-stream, application/json",
            ResponseMode::Complete => "application/json",
        };
        let mut default_headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static(accepted_types)),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        for (name, value) in headers {
            default_headers.insert(*name, HeaderValue::from_static(value));
        }
        for header in &extra_headers {
            // A header can be a credential, such as that of a gateway.
            address.check_key_allowed(authentication.plain_http)?;
            let (name, value) = header.name_and_value()?;
            default_headers.insert(name, value);
        }
        if let Some(key) = authentication.key.as_ref().and_then(KeySource::read) {
            address.check_key_allowed(authentication.plain_http)?;
            authentication.header.name_and_value(&key)?;
        }
        let encryption = if address.is_encrypted() {
            Encryption::Required
        } else {
            Encryption::None
        };
        let builder = client_builder(encryption).map_err(|error| ModelError::Configuration {
            message: error.to_string(),
            suggestion: TlsError::SUGGESTION.to_owned(),
        })?;
        let proxy = proxy.for_address(&address, variable)?;
        let builder = proxy.into_iter().fold(builder, reqwest::ClientBuilder::proxy);
        let client = builder
            .default_headers(default_headers)
            .connect_timeout(limits.connect_timeout)
            .build()
            .map_err(|error| ModelError::Configuration {
                message: format!("the HTTP client cannot be created: {error}"),
                suggestion: "check the TLS configuration of the machine".to_owned(),
            })?;
        Ok(Self {
            client,
            address,
            authentication,
            extra_headers,
            mode,
            limits,
        })
    }

    pub(crate) fn mode(&self) -> ResponseMode {
        self.mode
    }

    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// Returns the current key, if there is one.
    pub(crate) fn key(&self) -> Option<Secret> {
        self.authentication.key.as_ref().and_then(KeySource::read)
    }

    /// Replaces the key and the values of the extra headers in a text of the provider.
    pub(crate) fn redact(&self, text: &str, key: Option<&Secret>) -> String {
        let header_values = self.extra_headers.iter().map(|header| &header.value);
        let secrets = key.into_iter().chain(header_values);
        secrets.fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// Sends a request once, and returns the response as soon as its headers have arrived. Its body has not been read yet.
    ///
    /// # Errors
    /// A key that is not valid or must not be sent to this address, a transport error, headers that do not arrive in time, a
    /// status that is not a success, or a compressed body.
    pub(crate) async fn send(&self, body: Vec<u8>, key: Option<&Secret>) -> Result<HttpResponse, AttemptFailure> {
        let mut request = self.client.post(self.address.url().clone()).body(body);
        if let Some(key) = key {
            let header = self.authentication.header;
            let key_check = self.address.check_key_allowed(self.authentication.plain_http);
            let (name, value) = key_check
                .and_then(|()| header.name_and_value(key))
                .map_err(AttemptFailure::Permanent)?;
            request = request.header(name, value);
        }
        let mut deadline = Deadline::start(self.mode, self.limits.request_timeout);
        let response = deadline.wait_for(request.send()).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(redirect_failure(&response));
        }
        if !status.is_success() {
            let requested_wait = retry_after(response.headers(), SystemTime::now());
            let advice = retry_advice(response.headers());
            // The status is reported even if the body with the error message does not arrive.
            let body = HttpResponse::new(response, deadline, ERROR_BYTES_MAX)
                .read_beginning()
                .await;
            let failure = ProviderError::from_error_body(&body).into_failure(status.as_u16(), requested_wait);
            return Err(failure.with_advice(advice));
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            return Err(AttemptFailure::malformed(format!(
                "it is compressed (`{encoding}`), which was not requested"
            )));
        }
        Ok(HttpResponse::new(response, deadline, self.body_bytes_max()))
    }

    /// Returns the maximum size of a body. A stream repeats names and ids in each event, so that it is much larger than the
    /// response that it contains. [`ResponseAssembly`](crate::assembly::ResponseAssembly) limits the response itself.
    fn body_bytes_max(&self) -> usize {
        const STREAM_OVERHEAD_FACTOR: usize = 64;
        match self.mode {
            ResponseMode::Streaming => self.limits.response_bytes_max.saturating_mul(STREAM_OVERHEAD_FACTOR),
            ResponseMode::Complete => self.limits.response_bytes_max,
        }
    }
}

/// The time limits of one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    mode: ResponseMode,
    /// The request timeout; see [`RequestLimits::request_timeout`].
    timeout: Duration,
    /// The maximum duration of the attempt.
    attempt_timeout: Duration,
    /// The time at which `attempt_timeout` ends.
    attempt_end: tokio::time::Instant,
}

impl Deadline {
    fn start(mode: ResponseMode, timeout: Duration) -> Self {
        let attempt_timeout = match mode {
            ResponseMode::Streaming => STREAM_TIMEOUT.max(timeout),
            ResponseMode::Complete => timeout,
        };
        Self {
            mode,
            timeout,
            attempt_timeout,
            attempt_end: tokio::time::Instant::now() + attempt_timeout,
        }
    }

    /// Waits for the headers or the next piece of a response, within the time limits.
    pub(super) async fn wait_for<T>(
        &mut self,
        next: impl Future<Output = Result<T, reqwest::Error>>,
    ) -> Result<T, AttemptFailure> {
        let piece_end = tokio::time::Instant::now() + self.timeout;
        let (expected, limit, end) = match self.mode {
            ResponseMode::Streaming if piece_end <= self.attempt_end => ("data", self.timeout, piece_end),
            _ => ("complete response", self.attempt_timeout, self.attempt_end),
        };
        match tokio::time::timeout_at(end, next).await {
            Ok(result) => result.map_err(AttemptFailure::from_transport_error),
            Err(_) => Err(AttemptFailure::timed_out(expected, limit)),
        }
    }
}

/// Returns the failure for a redirect. Redirects are not followed, since they could send the key and the conversation to
/// another host.
fn redirect_failure(response: &Response) -> AttemptFailure {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    let host = target.as_ref().and_then(Url::host_str).unwrap_or("an unknown host");
    AttemptFailure::Permanent(ModelError::Refused {
        status: response.status().as_u16(),
        message: format!("it redirects to `{host}`, and redirects are not followed"),
    })
}
