//! The HTTP client for all requests of the host: to models, MCP servers and telemetry collectors, and for downloads.
//!
//! The requests can contain API keys. So the client of [`client_builder`] uses no proxy from the environment, follows no
//! redirects and retries no requests. It trusts the root certificates of the platform. It does not install its crypto
//! provider as the default of the process, because the embedding program chooses that default.
//!
//! [`is_loopback`] decides which servers may receive API keys over plain HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{ClientBuilder, Url, redirect, retry};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// Whether the requests of a client are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// All requests use `https`.
    Required,
    /// Requests use `https` or `http`. The caller decides which URLs may use `http`.
    Optional,
    /// All requests use `http`. The root certificates of the platform are not read.
    None,
}

impl Encryption {
    /// Returns the encryption for URLs of a scheme: none for `http`, required for every other scheme.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Self {
        match scheme {
            "http" => Self::None,
            _ => Self::Required,
        }
    }
}

/// The reason why TLS cannot be configured, usually missing root certificates.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be configured: {0}")]
pub struct TlsError(#[from] rustls::Error);

impl TlsError {
    /// The suggestion for the user who sees the error.
    pub const SUGGESTION: &str = "install the system's root certificates (the package `ca-certificates`)";
}

/// Returns the builder of a client that sends each request once, and only to the server in its URL. The caller adds
/// headers and timeouts.
///
/// # Errors
/// [`TlsError`] if TLS cannot be configured.
pub fn client_builder(encryption: Encryption) -> Result<ClientBuilder, TlsError> {
    let builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls_config(encryption)?)
        .https_only(encryption == Encryption::Required)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(retry::never())
        .tcp_nodelay(true)
        .user_agent(concat!("toolwit/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// Returns whether the host of a URL is this machine: `localhost` or a loopback address, also in its IPv6-mapped form. Subdomains
/// of `localhost` are not, because an untrusted DNS server could resolve them to another machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost",
    }
}

fn tls_config(encryption: Encryption) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = match encryption {
        Encryption::Required | Encryption::Optional => builder.with_platform_verifier()?.with_no_client_auth(),
        Encryption::None => builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Starts a server that responds to one request with a redirect. Returns its URL and a thread that returns the
    /// request.
    fn redirecting_server() -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            let response = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(response.as_bytes()).unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        (url, server)
    }

    #[tokio::test]
    async fn a_redirect_is_returned_and_not_followed() {
        let (url, server) = redirecting_server();
        let client = client_builder(Encryption::None).unwrap().build().unwrap();
        assert_eq!(client.get(url).send().await.unwrap().status(), 302);
        let head = server.join().unwrap();
        assert!(head.contains("user-agent: toolwit/"), "{head}");
        let provider = rustls::crypto::CryptoProvider::get_default();
        assert!(provider.is_none(), "an embedder chooses the provider of its process");
    }

    #[tokio::test]
    async fn a_client_that_requires_encryption_rejects_plain_http() {
        // On a machine without root certificates, there is nothing to test.
        let Ok(builder) = client_builder(Encryption::Required) else {
            return;
        };
        let error = builder
            .build()
            .unwrap()
            .get("http://127.0.0.1:1/")
            .send()
            .await
            .unwrap_err();
        assert!(error.is_builder(), "{error:?}");
    }

    #[test]
    fn loopback_addresses_and_names_are_this_machine() {
        for (host, is_local) in [
            ("127.0.0.1", true),
            ("127.8.9.10:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]", true),
            ("LOCALHOST", true),
            ("mcp.localhost", false),
            ("localhost.example.com", false),
            ("mylocalhost", false),
            ("127.0.0.1.example.com", false),
            ("0.0.0.0", false),
            ("[::ffff:10.0.0.1]", false),
        ] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(is_loopback(&url), is_local, "{host}");
        }
    }

    #[test]
    fn only_the_scheme_http_has_no_encryption() {
        for (scheme, encryption) in [
            ("https", Encryption::Required),
            ("http", Encryption::None),
            ("ftp", Encryption::Required),
        ] {
            assert_eq!(Encryption::of_scheme(scheme), encryption, "{scheme}");
        }
    }
}
