//! One endpoint of a provider.

use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url, redirect};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::address::{EndpointAddress, PlainHttp};
use super::failure::{AttemptFailure, ProviderError};
use super::retry::{RetryPolicy, retry_after};
use super::secret::Secret;
use super::tls;
use toolwit_agent::model::ModelError;

/// The maximum number of bytes read from the body of an error response. Explanations of errors are far shorter.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The maximum number of bytes allocated for an announced length before any bytes arrive.
const INITIAL_CAPACITY_BYTES_MAX: u64 = 64 << 10;

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_bytes_max: usize,
    pub(crate) retry: RetryPolicy,
}

/// An endpoint that accepts JSON by POST.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    client: Client,
    address: EndpointAddress,
    key: Option<Secret>,
    limits: RequestLimits,
}

/// The body of a successful response.
pub(crate) struct HttpReply {
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: String,
}

/// The treatment of a body that exceeds its limit.
enum OversizedBody {
    Refuse,
    Truncate,
}

impl Endpoint {
    /// Creates an endpoint. It does not use proxies from the environment, follow redirects or decompress bodies.
    pub(crate) fn new(
        address: EndpointAddress,
        key: Option<Secret>,
        plain: PlainHttp,
        limits: RequestLimits,
    ) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        if let Some(key) = &key {
            address.check_key(plain)?;
            headers.insert(AUTHORIZATION, bearer(key)?);
        }
        let tls = if address.is_encrypted() {
            tls::platform_roots()?
        } else {
            tls::no_roots()?
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(address.is_encrypted())
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .user_agent(concat!("toolwit/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(limits.connect_timeout)
            .timeout(limits.request_timeout)
            .build()
            .map_err(|error| ModelError::Configuration {
                message: format!("the HTTP client cannot be created: {error}"),
                suggestion: "check the TLS configuration of the machine".to_owned(),
            })?;
        Ok(Self {
            client,
            address,
            key,
            limits,
        })
    }

    /// Sends a request, and retries it until `read` accepts a response or a retry cannot help.
    ///
    /// Cancellation ends it immediately, also while it waits.
    pub(crate) async fn post<T>(
        &self,
        request: &impl Serialize,
        cancel: &CancellationToken,
        read: impl Fn(&HttpReply) -> Result<T, AttemptFailure>,
    ) -> Result<T, ModelError> {
        let body = serde_json::to_vec(request).map_err(|error| ModelError::Configuration {
            message: format!("the request cannot be serialized as JSON: {error}"),
            suggestion: "check the options of the model".to_owned(),
        })?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            response = self.attempts(&body, read) => response,
        }
    }

    async fn attempts<T>(
        &self,
        body: &[u8],
        read: impl Fn(&HttpReply) -> Result<T, AttemptFailure>,
    ) -> Result<T, ModelError> {
        let mut waits = self.limits.retry.waits();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match self.attempt(body).await.and_then(|reply| read(&reply)) {
                Ok(response) => return Ok(response),
                Err(failure) => failure.cleaned(|text| self.redact(text)),
            };
            let wait = match &failure {
                AttemptFailure::Transient { retry_after, .. } => waits.next(*retry_after),
                AttemptFailure::TimedOut { .. } | AttemptFailure::Permanent(_) => None,
            };
            let Some(wait) = wait else {
                return Err(failure.after(attempts));
            };
            debug!(
                host = self.address.host(),
                attempts,
                ?wait,
                ?failure,
                "retrying the request to the provider"
            );
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, body: &[u8]) -> Result<HttpReply, AttemptFailure> {
        let url = self.address.url().clone();
        let sent = self.client.post(url).body(body.to_vec()).send().await;
        let response = sent.map_err(|error| self.in_transport(error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        if !status.is_success() {
            let wait = retry_after(response.headers(), SystemTime::now());
            // The status decides, even if the explanation does not arrive.
            let body = self
                .read(response, ERROR_BYTES_MAX, OversizedBody::Truncate)
                .await
                .unwrap_or_default();
            return Err(ProviderError::in_error_body(&body).failure(status.as_u16(), wait));
        }
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
            return Err(AttemptFailure::malformed(format!(
                "it is compressed (`{encoding}`), which was not requested"
            )));
        }
        let content_type = header(CONTENT_TYPE).unwrap_or_default();
        let body = self
            .read(response, self.limits.response_bytes_max, OversizedBody::Refuse)
            .await?;
        Ok(HttpReply { body, content_type })
    }

    /// Reads a body in pieces, so that its limit is enforced before it is buffered.
    async fn read(
        &self,
        mut response: Response,
        bytes_max: usize,
        excess: OversizedBody,
    ) -> Result<Vec<u8>, AttemptFailure> {
        let capacity = response
            .content_length()
            .unwrap_or_default()
            .min(INITIAL_CAPACITY_BYTES_MAX);
        let mut body = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        while let Some(piece) = response.chunk().await.map_err(|error| self.in_transport(error))? {
            let fitting = piece.len().min(bytes_max - body.len());
            body.extend_from_slice(&piece[..fitting]);
            match excess {
                _ if fitting == piece.len() => {}
                OversizedBody::Truncate => break,
                OversizedBody::Refuse => {
                    return Err(AttemptFailure::malformed(format!("it has more than {bytes_max} bytes")));
                }
            }
        }
        Ok(body)
    }

    fn in_transport(&self, error: reqwest::Error) -> AttemptFailure {
        AttemptFailure::in_transport(error, self.limits.request_timeout)
    }

    fn redact(&self, text: &str) -> String {
        match &self.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        }
    }
}

/// Describes a redirect. Redirects are not followed, since the key and the conversation would be sent to another host.
fn redirected(response: &Response) -> AttemptFailure {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    let host = target.as_ref().and_then(Url::host_str).unwrap_or("an unknown host");
    AttemptFailure::Permanent(ModelError::Refused {
        status: response.status().as_u16(),
        message: format!("it redirects to `{host}`, and redirects are not followed"),
    })
}

fn bearer(key: &Secret) -> Result<HeaderValue, ModelError> {
    let text = Some(key.expose()).filter(|key| !key.is_empty());
    let value = text.and_then(|key| HeaderValue::from_str(&format!("Bearer {key}")).ok());
    let mut value = value.ok_or_else(|| ModelError::Configuration {
        message: "the key is empty, or has characters that are not allowed in an HTTP header".to_owned(),
        suggestion: "copy the key again: it is a single line of printable characters".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}
