//! Files at URLs, and the trait of their downloader.

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use toolwit_core::{Error, ErrorKind, Phase};

/// Downloads packages and package indexes. This crate has no HTTP client; `toolwit::download::HttpDownloader`
/// implements this trait.
#[async_trait]
pub trait Download: Send + Sync {
    /// Downloads a file of at most `bytes_max` bytes, without credentials. The target of a redirect must be checked
    /// with [`FileUrl::join`].
    ///
    /// # Errors
    /// If the file cannot be downloaded completely, or is larger than `bytes_max`.
    async fn download(&self, url: &FileUrl, bytes_max: u64) -> Result<Vec<u8>, Error>;
}

/// The URL of a file: `https`, or `http` to a loopback address or `localhost`. It has no user name, password or
/// fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileUrl(Url);

impl FileUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a URL that is invalid or not allowed. The error does not contain a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let url = Url::parse(text.trim()).map_err(|error| invalid_url(&format!("a URL is invalid: {error}")))?;
        Self::check(url)
    }

    /// Resolves the target of a link or a redirect, without its fragment. The target of an `https` URL must be an
    /// `https` URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a target that is invalid or not allowed.
    pub fn join(&self, target: &str) -> Result<Self, Error> {
        let joined = self.0.join(target.trim());
        let mut url = joined.map_err(|error| invalid_url(&format!("a URL is invalid: {error}")))?;
        url.set_fragment(None);
        let target = Self::check(url)?;
        if self.is_encrypted() && !target.is_encrypted() {
            return Err(invalid_url(&format!(
                "`{self}` leads to `{target}`, which is not encrypted"
            )));
        }
        Ok(target)
    }

    /// Returns whether the scheme is `https`.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the name of the plugin at this URL: the last segment of the path, without the extension `.wasm`. The
    /// name is not checked.
    pub(super) fn plugin_name(&self) -> &str {
        let file = self.0.path().rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".wasm").unwrap_or(file)
    }

    /// Checks that a URL is allowed.
    fn check(url: Url) -> Result<Self, Error> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid_url("a URL contains a user name or a password"));
        }
        if url.fragment().is_some() {
            return Err(invalid_url(
                "a URL has an unsupported fragment; only `#sha256=…` is supported",
            ));
        }
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_loopback(&url) => Ok(Self(url)),
            "http" => Err(invalid_url(&format!("`{url}` is not encrypted"))),
            scheme => Err(invalid_url(&format!("a URL has the scheme `{scheme}`, not `https`"))),
        }
    }
}

impl fmt::Display for FileUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn invalid_url(message: &str) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
        "use an `https` URL without a user name, such as `https://example.com/calc.wasm#sha256=DIGEST`",
    )
}

/// The SHA-256 digest of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FileDigest(String);

impl FileDigest {
    /// Computes the digest of a file's content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(format!("{:x}", Sha256::digest(content)))
    }

    /// Parses 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for any other text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let digits = text.trim();
        if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            Ok(Self(digits.to_ascii_lowercase()))
        } else {
            let message = "a SHA-256 digest must have 64 hexadecimal digits";
            Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`sha256sum FILE` computes it"))
        }
    }
}

impl TryFrom<String> for FileDigest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file at a URL, with its digest if it is known: `https://example.com/calc.wasm#sha256=DIGEST`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub struct RemoteFile {
    /// The URL.
    pub url: FileUrl,
    /// The digest that the content of the file must have, if it is known.
    pub digest: Option<FileDigest>,
}

impl RemoteFile {
    /// Parses a URL, with or without the fragment `#sha256=…`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid URL or digest.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (url, digest) = match text.split_once("#sha256=") {
            Some((url, digest)) => (url, Some(FileDigest::parse(digest)?)),
            None => (text, None),
        };
        Ok(Self {
            url: FileUrl::parse(url)?,
            digest,
        })
    }
}

impl fmt::Display for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.digest {
            Some(digest) => write!(f, "{}#sha256={digest}", self.url),
            None => write!(f, "{}", self.url),
        }
    }
}

impl From<RemoteFile> for String {
    fn from(file: RemoteFile) -> Self {
        file.to_string()
    }
}

impl TryFrom<String> for RemoteFile {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn url_must_be_https_or_lead_to_this_machine() {
        for url in [
            "https://example.com/calc.wasm",
            "http://127.0.0.1:81/calc.wasm",
            "http://[::1]/calc.wasm",
            "http://localhost/calc.wasm",
        ] {
            assert_eq!(FileUrl::parse(url).unwrap().as_str(), url);
        }
        for url in [
            "http://example.com/calc.wasm",
            "http://10.0.0.1/calc.wasm",
            "http://localhost.example.com/calc.wasm",
            "http://127.0.0.1.example.com/calc.wasm",
            "ftp://example.com/calc.wasm",
            "file:///etc/passwd",
            "https://",
            "calc.wasm",
        ] {
            assert_eq!(FileUrl::parse(url).unwrap_err().kind, ErrorKind::Configuration, "{url}");
        }
    }

    #[test]
    fn url_with_a_password_is_refused_without_showing_it() {
        for url in [
            "https://user:hunter2@example.com/calc.wasm",
            "https://hunter2@example.com/",
        ] {
            let error = FileUrl::parse(url).unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn link_from_an_https_url_must_be_https() {
        let index = FileUrl::parse("https://example.com/tools/index.json").unwrap();
        let join = |target: &str| index.join(target).map(|url| url.to_string());
        assert_eq!(join("calc.wasm").unwrap(), "https://example.com/tools/calc.wasm");
        assert_eq!(
            join("https://cdn.example.com/c#x").unwrap(),
            "https://cdn.example.com/c"
        );
        for target in [
            "http://example.com/calc.wasm",
            "http://127.0.0.1/calc.wasm",
            "file:///etc/passwd",
            "//user@example.com/calc.wasm",
        ] {
            assert!(join(target).is_err(), "{target}");
        }
        let local = FileUrl::parse("http://127.0.0.1/index.json").unwrap();
        assert!(local.join("http://127.0.0.1/calc.wasm").is_ok());
        assert!(local.join("http://example.com/calc.wasm").is_err());
    }

    #[test]
    fn digest_must_have_64_hexadecimal_digits() {
        let digest = FileDigest::of(b"abc");
        assert!(digest.to_string().starts_with("ba7816bf8f01cfea"));
        let upper = digest.to_string().to_ascii_uppercase();
        assert_eq!(FileDigest::parse(&upper).unwrap(), digest);
        for wrong in ["", "ba7816bf", &"g".repeat(64), &"é".repeat(32)] {
            assert!(FileDigest::parse(wrong).is_err(), "{wrong}");
        }
        let pinned = RemoteFile::parse(&format!("https://h/a.wasm#sha256={digest}")).unwrap();
        assert_eq!((pinned.url.as_str(), pinned.digest), ("https://h/a.wasm", Some(digest)));
        assert!(RemoteFile::parse("https://h/a.wasm#sha256=1").is_err());
        assert!(RemoteFile::parse("https://h/a.wasm#md5=1").is_err());
    }
}
