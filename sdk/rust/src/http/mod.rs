//! An HTTP client over `wasi:http`. Each request needs a grant (`toolwit grant NAME --http "GET https://example.com/"`).
//!
//! ```no_run
//! use toolwit_guest::http::{self, Request};
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let page = http::get("https://example.com/")?.text()?;
//!
//! let found: Vec<String> = Request::get("https://example.com/search")
//!     .query("q", "beans & rice")
//!     .header("accept-language", "en")
//!     .send()?
//!     .json()?;
//!
//! Request::post("https://example.com/orders").json(&found)?.send()?;
//! # Ok(())
//! # }
//! ```
//!
//! A status from 400 is an error with the beginning of the body, so that the model can act on it. A redirect is an error with
//! its destination, which may be another host; request it, if that is intended.

use std::{fmt, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

mod url;
#[cfg(target_family = "wasm")]
mod wasi;

use self::url::Url;

/// The default maximum size of a response body, in bytes.
const DEFAULT_BODY_BYTES_MAX: usize = 8 << 20;

/// The maximum length of the beginning of the body that an error contains, in characters.
const EXCERPT_CHARS_MAX: usize = 500;

/// Requests a URL with `GET`.
///
/// # Errors
///
/// Those of [`Request::send`].
pub fn get(url: impl Into<String>) -> Result<Response, HttpError> {
    Request::get(url).send()
}

/// An HTTP request.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    method: String,
    url: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    timeout: Option<Duration>,
    body_bytes_max: usize,
    accepts_every_status: bool,
}

impl Request {
    /// Creates a request with any method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            timeout: None,
            body_bytes_max: DEFAULT_BODY_BYTES_MAX,
            accepts_every_status: false,
        }
    }

    /// Creates a `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Creates a `POST` request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Creates a `PUT` request.
    pub fn put(url: impl Into<String>) -> Self {
        Self::new("PUT", url)
    }

    /// Creates a `PATCH` request.
    pub fn patch(url: impl Into<String>) -> Self {
        Self::new("PATCH", url)
    }

    /// Creates a `DELETE` request.
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new("DELETE", url)
    }

    /// Adds a parameter to the query of the URL, and encodes it.
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to JSON, with its content type.
    ///
    /// # Errors
    ///
    /// [`HttpError::Json`] if the value has no form in JSON.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<Self, HttpError> {
        let body = serde_json::to_vec(value).map_err(HttpError::Json)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sets the time limit for connecting, for the first byte of the response, and between two parts of the response. The
    /// host has limits of its own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum size of the response body. The default is 8 MiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Makes [`send`](Self::send) return responses of every status, redirects and errors included.
    pub fn accept_all(mut self) -> Self {
        self.accepts_every_status = true;
        self
    }

    /// Sends the request, and reads the response to its end.
    ///
    /// # Errors
    ///
    /// [`HttpError`] if the URL, the method or a header is invalid, the request is not granted, the connection failed, the body
    /// is too large, or the status is that of a redirect or an error.
    pub fn send(self) -> Result<Response, HttpError> {
        let url = Url::parse(&self.url, &self.query)?;
        let response = exchange(&self, &url)?;
        if self.accepts_every_status || response.status < 300 {
            return Ok(response);
        }
        Err(HttpError::Status {
            status: response.status,
            host: url.authority,
            location: response.header("location").map(str::to_owned),
            excerpt: String::from_utf8_lossy(&response.body)
                .chars()
                .take(EXCERPT_CHARS_MAX)
                .collect(),
        })
    }
}

#[cfg(target_family = "wasm")]
fn exchange(request: &Request, url: &Url) -> Result<Response, HttpError> {
    wasi::exchange(request, url)
}

/// There is no network in a native test.
#[cfg(not(target_family = "wasm"))]
fn exchange(request: &Request, url: &Url) -> Result<Response, HttpError> {
    let _unused = (
        &request.body,
        &request.timeout,
        &request.body_bytes_max,
        url.is_https,
        &url.path,
    );
    Err(HttpError::Failed {
        host: url.authority.clone(),
        message: format!("there is no host for {} requests in a native test", request.method),
    })
}

/// An HTTP response that has been read completely.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Response {
    /// Returns the status, such as 200.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the value of the first header with this name, ignoring case. `None` if there is no such header, or if its value
    /// is not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(header, _)| header.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Returns the body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Returns the body as text.
    ///
    /// # Errors
    ///
    /// [`HttpError::NotText`] if it is not UTF-8.
    pub fn text(self) -> Result<String, HttpError> {
        String::from_utf8(self.body).map_err(|_| HttpError::NotText)
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// [`HttpError::Json`] if it is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(HttpError::Json)
    }
}

/// An error of an HTTP request.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL is invalid, with the reason.
    Url {
        /// The reason.
        reason: &'static str,
    },
    /// A header or the method is invalid.
    Header {
        /// The name of the header, or the method.
        name: String,
    },
    /// The request is not granted, or the connection failed.
    Failed {
        /// The host of the URL.
        host: String,
        /// The reason.
        message: String,
    },
    /// The status is that of a redirect or an error.
    Status {
        /// The status.
        status: u16,
        /// The host of the URL.
        host: String,
        /// The destination of a redirect.
        location: Option<String>,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The body is larger than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The body is not UTF-8.
    NotText,
    /// The response body is not JSON of the expected type, or the request body has no form in JSON.
    Json(serde_json::Error),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { reason } => write!(f, "the URL is not valid: {reason}"),
            Self::Header { name } => write!(f, "the header or method `{name}` is not valid"),
            Self::Failed { host, message } => write!(f, "the request to `{host}` failed: {message}"),
            Self::Status {
                status,
                host,
                location: Some(location),
                ..
            } => write!(f, "`{host}` returned status {status}, a redirect to `{location}`"),
            Self::Status {
                status, host, excerpt, ..
            } => write!(f, "`{host}` returned status {status}: {}", excerpt.trim()),
            Self::TooLarge { limit } => write!(f, "the response is larger than {limit} bytes"),
            Self::NotText => f.write_str("the response is not UTF-8"),
            Self::Json(error) => write!(f, "the value cannot be converted to or from JSON: {error}"),
        }
    }
}

impl std::error::Error for HttpError {}
