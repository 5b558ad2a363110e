//! The gate between a guest and the network. It checks each request against the grants and the HTTP budget of the call.

use std::sync::{Arc, OnceLock};

use http::header::ACCEPT_ENCODING;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

#[cfg(feature = "network")]
use super::dial;
use super::http_budget::{HttpBudget, HttpLimits};
use super::network::Network;
use crate::grants::authority::Authority;
#[cfg(feature = "network")]
use crate::grants::authority::Secret;
use crate::grants::{AccessRequest, HttpRule, RequestTarget};
use crate::link::limits::call_clock::Deadline;

/// The maximum size of one write of a guest to the body of a message, in bytes. wasmtime's default is 1 MiB.
pub(crate) const BODY_CHUNK_BYTES: usize = 64 << 10;

/// The configured number of writes of [`BODY_CHUNK_BYTES`] in the buffer of a body. wasmtime buffers one write more.
pub(crate) const BODY_CHUNKS: usize = 1;

/// A boxed future of the HTTP client.
pub(crate) type SendFuture<T> = Box<dyn Future<Output = Result<T, Error>> + Send>;

/// The future that drives the connection of a response. It must be polled while the response is read.
pub(crate) type ConnectionDriver = SendFuture<()>;

/// The gate of one instance. It denies every request until a call opens it, with the authority, budget and deadline of that
/// call.
pub(crate) struct HttpGate {
    network: Arc<Network>,
    call: Option<GateCall>,
}

/// The call for which the gate is open.
struct GateCall {
    authority: Authority,
    limits: HttpLimits,
    /// The budget of the surrounding call.
    outer_budget: Option<Arc<HttpBudget>>,
    /// The budget of this call, created by its first request or its first nested call.
    budget: OnceLock<Arc<HttpBudget>>,
    deadline: Deadline,
}

impl GateCall {
    fn budget(&self) -> &Arc<HttpBudget> {
        self.budget
            .get_or_init(|| Arc::new(HttpBudget::new(self.limits, self.outer_budget.as_deref())))
    }
}

/// A request that the gate has admitted, with its rule and its limits.
pub(crate) struct AdmittedRequest {
    pub(crate) target: RequestTarget,
    pub(crate) rule: HttpRule,
    pub(crate) authority: Authority,
    pub(crate) budget: Arc<HttpBudget>,
    pub(crate) deadline: Instant,
    pub(crate) network: Arc<Network>,
}

#[cfg(feature = "network")]
impl AdmittedRequest {
    /// Returns whether the server may know a granted secret. If so, its response must have a form in which the redactor finds
    /// secrets.
    pub(super) fn may_echo_secret(&self) -> bool {
        let may_be_known_to_server = |secret: &Secret| {
            let target = secret.rule.target.as_ref();
            target.is_some_and(|target| target.host.matches(&self.target.host))
        };
        self.authority.secrets.iter().any(may_be_known_to_server)
    }
}

impl HttpGate {
    pub(crate) fn new(network: Arc<Network>) -> Self {
        Self { network, call: None }
    }

    /// Opens the gate for a call with this authority. Its requests also draw on `outer_budget`, the budget of the surrounding call.
    pub(crate) fn open(
        &mut self,
        authority: &Authority,
        limits: HttpLimits,
        outer_budget: Option<Arc<HttpBudget>>,
        deadline: Deadline,
    ) {
        self.call = Some(GateCall {
            authority: authority.clone(),
            limits,
            outer_budget,
            budget: OnceLock::new(),
            deadline,
        });
    }

    /// Returns the budget of the call, for its nested calls. Returns `None` if the gate is closed.
    pub(crate) fn budget(&self) -> Option<Arc<HttpBudget>> {
        self.call.as_ref().map(|call| call.budget().clone())
    }

    /// Closes the gate and drops everything that belongs to the call.
    pub(crate) fn close(&mut self) {
        self.call = None;
    }

    /// Checks a request against the grants and draws on the budget of the call.
    ///
    /// # Errors
    /// [`Error::HttpRequestDenied`]. If the gate is open, the reason is recorded for the operator.
    fn admit(&self, request: &http::Request<WasiBody>) -> Result<AdmittedRequest, Error> {
        let call = self.call.as_ref().ok_or(Error::HttpRequestDenied)?;
        let refuse = |access: String, reason: String, suggestion: String| {
            call.authority.record_refusal(access, reason, suggestion);
            Error::HttpRequestDenied
        };
        let uri = request.uri();
        let target = RequestTarget::new(
            request.method().as_str(),
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", |authority| authority.as_str()),
            uri.path_and_query().map_or("/", |path| path.as_str()),
        )
        .map_err(|error| {
            refuse(
                "send this request".to_owned(),
                error.to_string(),
                "change the request".to_owned(),
            )
        })?;
        let rule = call.authority.rights.effective.http_rule(&target).map_err(|denial| {
            call.authority.record_denial(&AccessRequest::Http(&target), &denial);
            Error::HttpRequestDenied
        })?;
        call.authority.record_access(&AccessRequest::Http(&target));
        let rule = rule.clone();
        let budget = call.budget();
        if let Err(exceeded) = budget.take_request() {
            let reason = format!(
                "a call may make at most {} requests, including those of nested calls",
                exceeded.max
            );
            return Err(refuse(
                AccessRequest::Http(&target).to_string(),
                reason,
                "send fewer requests in one call; an operator can raise `http_requests_max`".to_owned(),
            ));
        }
        Ok(AdmittedRequest {
            target,
            rule,
            authority: call.authority.clone(),
            budget: budget.clone(),
            deadline: call
                .deadline
                .instant()
                .min(Instant::now() + call.limits.request_wall_max),
            network: self.network.clone(),
        })
    }
}

/// Returns whether guests are forbidden to set a header, because the header frames the message, contains the host, or is for a
/// proxy.
pub(crate) fn is_forbidden_header(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || matches!(name.as_str(), "te" | "trailer" | "expect" | "forwarded" | "via")
        || name.as_str().starts_with("proxy-")
}

impl WasiHttpHooks for HttpGate {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_forbidden_header)
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        BODY_CHUNKS
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES
    }

    fn set_host_header(&mut self) -> bool {
        // `dial` sets the `Host` header, from the target that the gate has checked.
        false
    }

    fn send_request(
        &mut self,
        mut request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: SendFuture<()>,
    ) -> SendFuture<(http::Response<WasiBody>, SendFuture<()>)> {
        // Without this header, a server may compress the response in any way, which few guests expect.
        let headers = request.headers_mut();
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        match self.admit(&request) {
            Ok(admitted) => Box::new(send(admitted, request, options.unwrap_or_default())),
            Err(error) => Box::new(async { Err(error) }),
        }
    }
}

#[cfg(feature = "network")]
async fn send(
    admitted: AdmittedRequest,
    request: http::Request<WasiBody>,
    options: RequestOptions,
) -> Result<(http::Response<WasiBody>, SendFuture<()>), Error> {
    dial::send(admitted, request, options).await
}

/// Without the feature `network`, grants of hosts are refused, so no request is admitted.
#[cfg(not(feature = "network"))]
async fn send(
    _: AdmittedRequest,
    _: http::Request<WasiBody>,
    _: RequestOptions,
) -> Result<(http::Response<WasiBody>, SendFuture<()>), Error> {
    Err(Error::HttpRequestDenied)
}
