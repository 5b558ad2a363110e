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

use super::authorization_response::{AuthorizationResponse, ExpectedResponse};

/// The path to which the browser returns.
const PATH: &str = "/callback";

/// The maximum number of simultaneous connections. A browser opens only a few.
const CONNECTIONS_MAX: usize = 16;

/// The maximum time in which the headers of a request arrive.
const HEADERS_WALL_MAX: Duration = Duration::from_secs(10);

/// The maximum size of the headers of a request, in bytes.
const HEADERS_BYTES_MAX: usize = 32 << 10;

/// The maximum time for sending the last responses to the browser, after the response of the issuer has arrived.
const SHUTDOWN_WALL_MAX: Duration = Duration::from_secs(1);

/// The time until the next attempt after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener on a loopback address. The issuer redirects the browser to this address with its response.
pub(super) struct RedirectListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl RedirectListener {
    /// Listens on a port; 0 selects a free port.
    ///
    /// # Errors
    /// If the port is not available.
    pub(super) async fn bind(port: u16) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot listen for the response of the browser: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Returns the address to which the issuer redirects the browser.
    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the response to the login, and returns the authorization code. Any web page can send other requests. They
    /// are ignored, and get an error page.
    ///
    /// # Errors
    /// If the response of the issuer cannot be used; see [`AuthorizationResponse::into_code`].
    pub(super) async fn receive(self, expected: ExpectedResponse) -> Result<Zeroizing<String>, String> {
        let (code_sender, mut codes) = mpsc::channel(1);
        let page = Arc::new(CallbackPage {
            host: self.address.to_string(),
            expected,
            code_sender,
        });
        let shutdown = CancellationToken::new();
        let mut connections = JoinSet::new();
        let code = loop {
            tokio::select! {
                biased;
                Some(code) = codes.recv() => break code,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                stream = accept(&self.listener), if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn(serve(stream, page.clone(), shutdown.clone()));
                }
            }
        };
        shutdown.cancel();
        let all_connections_end = async { while connections.join_next().await.is_some() {} };
        drop(tokio::time::timeout(SHUTDOWN_WALL_MAX, all_connections_end).await);
        code
    }
}

/// Accepts the next connection. Skips a connection that cannot be accepted.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // If the process has no free file descriptors, an immediate retry would fail, too.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// The page to which the browser returns after the login.
struct CallbackPage {
    /// The only accepted value of the header `Host`: the address of the listener.
    host: String,
    expected: ExpectedResponse,
    /// Receives the authorization code, or the reason why there is none.
    code_sender: mpsc::Sender<Result<Zeroizing<String>, String>>,
}

impl CallbackPage {
    fn response_to(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // This check prevents DNS rebinding: a web page can reach this address under its own host name, and could then read
        // the responses.
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        if host != Some(self.host.as_bytes()) || request.method() != Method::GET || request.uri().path() != PATH {
            return text_response(StatusCode::NOT_FOUND, "There is nothing here.");
        }
        let authorization = AuthorizationResponse::parse(request.uri().query().unwrap_or_default());
        if !authorization.belongs_to(&self.expected) {
            return text_response(
                StatusCode::BAD_REQUEST,
                "This response does not belong to the current login.",
            );
        }
        let code = authorization.into_code(&self.expected);
        let has_code = code.is_ok();
        match self.code_sender.try_send(code) {
            Err(_) => text_response(StatusCode::BAD_REQUEST, "The login already has a response."),
            Ok(()) if has_code => text_response(StatusCode::OK, "The response has arrived. You can close this page."),
            Ok(()) => text_response(
                StatusCode::BAD_REQUEST,
                "The login has failed. The program that began the login reports the reason.",
            ),
        }
    }
}

/// Answers the requests on a connection, until the connection or the login ends.
async fn serve(stream: TcpStream, page: Arc<CallbackPage>, shutdown: CancellationToken) {
    let service = service_fn(async |request: Request<Incoming>| Ok::<_, Infallible>(page.response_to(&request)));
    let http_connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WALL_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut http_connection = std::pin::pin!(http_connection);
    let result = tokio::select! {
        biased;
        result = http_connection.as_mut() => result,
        () = shutdown.cancelled() => {
            http_connection.as_mut().graceful_shutdown();
            http_connection.await
        }
    };
    if let Err(error) = result {
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
