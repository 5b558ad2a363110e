//! Sends a request that the gate has admitted: resolves the name, checks the addresses, and connects to a checked address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::body::{IncomingBody, OutgoingBody};
use super::counted_stream::{CountedStream, connection_error};
use super::gate::{AdmittedRequest, SendFuture};
use super::network::Network;
use super::response_restrictions::{request_plain_response, require_searchable};
use super::secret_placement::insert_secrets;
use crate::grants::{AccessRequest, RequestHost, Scheme, decide_address};
use toolwit_core::limits::CONNECT_WALL_MAX;

/// The maximum number of addresses of one name to which the host tries to connect.
const ADDRESSES_MAX: usize = 4;

/// A connection to a server, with or without TLS.
trait ServerStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ServerStream for T {}

/// Sends a request and returns its response, with the future that drives the connection. Redirects are not followed: the guest
/// must send a new request for each.
pub(super) async fn send(
    admitted: AdmittedRequest,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, SendFuture<()>), Error> {
    let request = prepare_request(&admitted, request)?;
    let stream = timeout_at(admitted.deadline, connect(&admitted, options))
        .await
        .map_err(|_| Error::ConnectionTimeout)??;
    exchange(&admitted, request, options, stream).await
}

/// Converts a request to the form that is sent: inserts secrets, sets the `Host` header to the checked host, and wraps the body so
/// that it draws on the budget. Takes the bytes of the head from the budget.
fn prepare_request(admitted: &AdmittedRequest, request: Request<WasiBody>) -> Result<Request<OutgoingBody>, Error> {
    let (mut parts, body) = request.into_parts();
    let path_and_query = insert_secrets(&admitted.authority.secrets, &admitted.target, &mut parts.headers)
        .ok_or_else(|| Error::InternalError(Some("a secret could not be inserted".to_owned())))?;
    parts.uri = path_and_query.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    if admitted.may_echo_secret() {
        request_plain_response(&mut parts.headers);
    }
    let host = HeaderValue::from_str(&admitted.target.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
    parts.headers.insert(HOST, host);
    let header_bytes: usize = parts
        .headers
        .iter()
        // Each header also has a colon, a space and a line break.
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let head_bytes = header_bytes + path_and_query.len();
    if head_bytes > admitted.budget.limits.header_bytes_max || admitted.budget.take_bytes(head_bytes).is_err() {
        return Err(Error::HttpRequestHeaderSectionSize(u32::try_from(head_bytes).ok()));
    }
    let budget = admitted.budget.clone();
    Ok(Request::from_parts(parts, OutgoingBody { body, budget }))
}

/// Checks all addresses of the host, and tries to connect to the first [`ADDRESSES_MAX`] of them, until one address accepts.
async fn connect(admitted: &AdmittedRequest, options: RequestOptions) -> Result<Box<dyn ServerStream>, Error> {
    let addresses = resolve_and_check(admitted).await?;
    let connect_wall_max = options
        .connect_timeout
        .unwrap_or(CONNECT_WALL_MAX)
        .min(CONNECT_WALL_MAX);
    let mut last_error = Error::DestinationNotFound;
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        let connecting = TcpStream::connect(SocketAddr::new(address, admitted.target.port));
        match tokio::time::timeout(connect_wall_max, connecting).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                let stream = CountedStream::new(stream, admitted.budget.clone());
                return match admitted.target.scheme {
                    Scheme::Http => Ok(Box::new(stream)),
                    Scheme::Https => connect_tls(&admitted.network, &admitted.target.host, stream).await,
                };
            }
            Ok(Err(error)) => last_error = Error::Connect(error),
            Err(_) => last_error = Error::ConnectionTimeout,
        }
    }
    Err(last_error)
}

/// Resolves the host and checks its addresses. Refuses the request if any address is not permitted, because a name that also
/// resolves to an internal address is not trusted.
async fn resolve_and_check(admitted: &AdmittedRequest) -> Result<Vec<IpAddr>, Error> {
    let addresses = match &admitted.target.host {
        RequestHost::Address(address) => vec![*address],
        RequestHost::Name(name) => admitted.network.resolver.resolve(name).await.map_err(|error| {
            tracing::debug!(%error, "name lookup failed");
            Error::DnsError {
                rcode: None,
                info_code: None,
            }
        })?,
    };
    for address in &addresses {
        if let Err(denial) = decide_address(&admitted.rule, *address) {
            admitted.authority.record_denied_address(
                &AccessRequest::Http(&admitted.target),
                &denial,
                format!("add `addresses = [\"{address}\"]` to the rule if that is intended"),
            );
            return Err(Error::DestinationIpProhibited);
        }
    }
    Ok(addresses)
}

async fn connect_tls(
    network: &Network,
    host: &RequestHost,
    stream: impl ServerStream + 'static,
) -> Result<Box<dyn ServerStream>, Error> {
    let name = match host {
        RequestHost::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::TlsProtocolError)?,
        RequestHost::Address(address) => ServerName::from(*address),
    };
    let connector = tokio_rustls::TlsConnector::from(network.tls_config()?);
    Ok(Box::new(connector.connect(name, stream).await.map_err(Error::Tls)?))
}

/// Sends the request and waits for the head of the response. Returns the response and the future that drives the connection while
/// the guest reads the body.
async fn exchange(
    admitted: &AdmittedRequest,
    request: Request<OutgoingBody>,
    options: RequestOptions,
    stream: Box<dyn ServerStream>,
) -> Result<(Response<WasiBody>, SendFuture<()>), Error> {
    let limits = admitted.budget.limits;
    let limited = |requested: Option<Duration>, max: Duration| requested.map_or(max, |requested| requested.min(max));
    let first_byte_max = limited(options.first_byte_timeout, limits.first_byte_wall_max);
    let between_bytes_max = limited(options.between_bytes_timeout, limits.between_bytes_wall_max);
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits.header_bytes_max);
    let (mut sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(connection_error)?;
    let mut connection = Box::pin(connection);
    let (mut is_open, mut connection_failure) = (true, None);
    // Sends the request, and polls the connection until the head of the response arrives.
    let receive_head = async {
        let mut sending = std::pin::pin!(sender.send_request(request));
        loop {
            tokio::select! {
                biased;
                response = &mut sending => return response,
                outcome = &mut connection, if is_open => {
                    is_open = false;
                    connection_failure = outcome.err();
                }
                // This branch is last, so that a complete response wins. Many servers close the connection right after it.
                Some(error) = async { connection_failure.take() } => return Err(error),
            }
        }
    };
    let head_deadline = admitted.deadline.min(Instant::now() + first_byte_max);
    let response = timeout_at(head_deadline, receive_head)
        .await
        .map_err(|_| Error::ConnectionReadTimeout)?
        .map_err(connection_error)?;
    let driver: SendFuture<()> = Box::new(async move {
        if is_open {
            connection.await.map_err(connection_error)?;
        }
        Ok(())
    });
    Ok((prepare_response(admitted, response, between_bytes_max)?, driver))
}

/// Converts a response to the form that the guest receives: removes secrets that the server echoes, and adds the time limits for
/// the body.
fn prepare_response(
    admitted: &AdmittedRequest,
    response: Response<hyper::body::Incoming>,
    between_bytes_max: Duration,
) -> Result<Response<WasiBody>, Error> {
    let (mut parts, body) = response.into_parts();
    if admitted.may_echo_secret() {
        require_searchable(&parts.headers)?;
    }
    let redactor = &admitted.authority.redactor;
    if !redactor.is_empty() {
        let names: Vec<HeaderName> = parts.headers.keys().cloned().collect();
        for name in names.iter().filter(|name| redactor.finds_in(name.as_str())) {
            parts.headers.remove(name);
        }
        for value in parts.headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            redactor.mask(&mut bytes);
            *value = HeaderValue::from_bytes(&bytes).map_err(|_| Error::HttpProtocolError)?;
        }
    }
    let body = IncomingBody::new(body, admitted.authority.clone(), between_bytes_max, admitted.deadline);
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}
