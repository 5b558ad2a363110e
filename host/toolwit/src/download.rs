//! Downloads packages over HTTPS.
//!
//! ```no_run
//! use std::ffi::OsStr;
//! use std::sync::Arc;
//!
//! use toolwit::download::HttpDownloader;
//! use toolwit::limits::DOWNLOAD_WALL_MAX;
//! use toolwit::registry::{Installation, PackageSource, RemoteFile};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let installation = Installation::new("./tools")
//!     .index(RemoteFile::parse("https://example.com/index.json")?)
//!     .downloader(Arc::new(HttpDownloader::new(DOWNLOAD_WALL_MAX)?));
//! for added in installation.run(&PackageSource::parse(OsStr::new("calc@1.2"))?).await? {
//!     println!("{} {}", added.name, added.digest);
//! }
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::ACCEPT_ENCODING;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response};

use toolwit_core::limits::{ByteCount, CONNECT_WALL_MAX, DOWNLOAD_REDIRECTS_MAX, Span};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_http::{Encryption, TlsError, client_builder};
use toolwit_registry::{Download, FileUrl};

/// Downloads files over HTTPS from hosts with a certificate that the system trusts.
///
/// The downloader sends no credentials or cookies, uses no proxy, and follows a limited number of redirects. It uses
/// plain HTTP only for loopback addresses.
#[derive(Clone, Debug)]
pub struct HttpDownloader {
    client: Client,
    wall_max: Duration,
}

impl HttpDownloader {
    /// Creates a downloader. `wall_max` is the maximum time of each download, usually
    /// [`DOWNLOAD_WALL_MAX`](toolwit_core::limits::DOWNLOAD_WALL_MAX).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if TLS cannot be configured.
    pub fn new(wall_max: Duration) -> Result<Self, Error> {
        let configuration_error = |why: String| {
            let message = format!("downloads are not possible: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(TlsError::SUGGESTION)
        };
        // Plain HTTP is only used for the addresses that `FileUrl` and `follow` accept.
        let client = client_builder(Encryption::Optional)
            .map_err(|error| configuration_error(error.to_string()))?
            .redirect(Policy::custom(follow))
            .connect_timeout(CONNECT_WALL_MAX)
            .timeout(wall_max)
            .build()
            .map_err(|error| configuration_error(error.to_string()))?;
        Ok(Self { client, wall_max })
    }

    /// Requests a file. Returns an error for a response with a status other than success.
    async fn request(&self, url: &FileUrl) -> Result<Response, Error> {
        let request = self.client.get(url.as_str()).header(ACCEPT_ENCODING, "identity");
        let response = request.send().await.map_err(|error| self.request_error(url, &error))?;
        let status = response.status();
        if status.is_success() {
            Ok(response)
        } else {
            Err(download_error(
                ErrorKind::Io,
                url,
                &format!("the server responded with status {status}"),
            ))
        }
    }

    /// Returns the error for a request that failed, with its innermost cause.
    fn request_error(&self, url: &FileUrl, error: &reqwest::Error) -> Error {
        if error.is_timeout() && error.is_connect() {
            let why = format!("no connection was established within {}", Span(CONNECT_WALL_MAX));
            return download_error(ErrorKind::Io, url, &why);
        }
        if error.is_timeout() {
            let why = format!("the download took longer than {}", Span(self.wall_max));
            return download_error(ErrorKind::Timeout, url, &why)
                .with_suggestion("pass a longer time limit to `HttpDownloader::new`");
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        download_error(ErrorKind::Io, url, &cause.to_string())
    }
}

#[async_trait]
impl Download for HttpDownloader {
    async fn download(&self, url: &FileUrl, bytes_max: u64) -> Result<Vec<u8>, Error> {
        let mut response = self.request(url).await?;
        let too_large = || {
            let why = format!("the file has more than {}", ByteCount(bytes_max));
            download_error(ErrorKind::FileBytes, url, &why)
        };
        if response.content_length().is_some_and(|length| length > bytes_max) {
            return Err(too_large());
        }
        // The length that the server announces is not trusted, so no memory is allocated for this length in advance.
        let mut content = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.request_error(url, &error))?
        {
            if (content.len() + chunk.len()) as u64 > bytes_max {
                return Err(too_large());
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }
}

/// Follows a redirect if [`FileUrl::join`] allows it and the download has not had too many redirects.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    if attempt.previous().len() > DOWNLOAD_REDIRECTS_MAX {
        return attempt.error(format!("the download has more than {DOWNLOAD_REDIRECTS_MAX} redirects"));
    }
    let source = attempt.previous().last().map(|url| FileUrl::parse(url.as_str()));
    let target = source.map(|source| source.and_then(|source| source.join(attempt.url().as_str())));
    match target {
        Some(Err(error)) => attempt.error(format!("a redirect was refused: {}", error.message)),
        Some(Ok(_)) | None => attempt.follow(),
    }
}

fn download_error(kind: ErrorKind, url: &FileUrl, why: &str) -> Error {
    Error::new(kind, Phase::Registry, format!("`{url}` could not be downloaded: {why}"))
}
