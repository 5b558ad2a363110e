//! The address on this machine to which the browser returns after a login.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, REFERRER_POLICY};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::authorization_code::{AuthorizationResponse, ExpectedResponse};

/// The path to which the browser returns.
const PATH: &str = "/callback";

/// The maximum number of connections at the same time. A browser opens a few.
const CONNECTIONS_MAX: usize = 16;

/// The maximum time in which the headers of a request arrive.
const HEADERS_WALL_MAX: Duration = Duration::from_secs(10);

/// The maximum size of the headers of a request, in bytes.
const HEADERS_BYTES_MAX: usize = 32 << 10;

/// The maximum time in which the last response is sent.
const END_WALL_MAX: Duration = Duration::from_secs(1);

/// A listener on a loopback address, to which the browser brings the response of the issuer.
pub(super) struct RedirectListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl RedirectListener {
    /// Listens on a port; 0 selects a free one.
    ///
    /// # Errors
    /// If the port is not available.
    pub(super) async fn bind(port: u16) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the response of the browser cannot be received: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Returns the address to which the issuer redirects the browser.
    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the response to the login. Other requests, which any web page can send, get an error and are ignored.
    ///
    /// # Errors
    /// If the response of the issuer cannot be used; see [`AuthorizationResponse::into_code`].
    pub(super) async fn receive(self, expected: ExpectedResponse) -> Result<Zeroizing<String>, String> {
        let (sender, mut codes) = mpsc::channel(1);
        let page = Arc::new(CallbackPage {
            host: self.address.to_string(),
            expected,
            sender,
        });
        let end = CancellationToken::new();
        let mut connections = JoinSet::new();
        let code = loop {
            tokio::select! {
                biased;
                Some(code) = codes.recv() => break code,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Ok((stream, _)) = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn(serve(stream, page.clone(), end.clone()));
                }
            }
        };
        end.cancel();
        let all_ended = async { while connections.join_next().await.is_some() {} };
        drop(tokio::time::timeout(END_WALL_MAX, all_ended).await);
        code
    }
}

/// The page to which the browser returns after the login.
struct CallbackPage {
    /// The only accepted value of the header `Host`.
    host: String,
    expected: ExpectedResponse,
    sender: mpsc::Sender<Result<Zeroizing<String>, String>>,
}

impl CallbackPage {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // A web page that reaches this address under another host name must not read the responses.
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        if host != Some(self.host.as_bytes()) || request.method() != Method::GET || request.uri().path() != PATH {
            return text_response(StatusCode::NOT_FOUND, "There is nothing here.");
        }
        let response = AuthorizationResponse::parse(request.uri().query().unwrap_or_default());
        if !response.belongs_to(&self.expected) {
            return text_response(
                StatusCode::BAD_REQUEST,
                "This response does not belong to a login that waits for one.",
            );
        }
        let code = response.into_code(&self.expected);
        let has_code = code.is_ok();
        match self.sender.try_send(code) {
            Err(_) => text_response(StatusCode::BAD_REQUEST, "The login has a response already."),
            Ok(()) if has_code => text_response(StatusCode::OK, "The response has arrived. You can close this page."),
            Ok(()) => text_response(
                StatusCode::BAD_REQUEST,
                "The login has failed. The reason is in the terminal.",
            ),
        }
    }
}

async fn serve(stream: TcpStream, page: Arc<CallbackPage>, end: CancellationToken) {
    let service = service_fn(async |request: Request<Incoming>| Ok::<_, Infallible>(page.answer(&request)));
    let http_connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WALL_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut http_connection = std::pin::pin!(http_connection);
    let outcome = tokio::select! {
        biased;
        outcome = http_connection.as_mut() => outcome,
        () = end.cancelled() => {
            http_connection.as_mut().graceful_shutdown();
            http_connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection of a browser failed");
    }
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
