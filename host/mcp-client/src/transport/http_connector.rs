//! The HTTP client of all requests: it follows no redirects, uses no proxy, and repeats nothing.

use reqwest::{Client, redirect};

use super::tls;
use toolwit_core::limits::CONNECT_WALL_MAX;

/// Creates a client for encrypted requests, or for plain requests to this machine.
///
/// # Errors
/// The reason why TLS cannot be configured.
pub(super) fn client(is_encrypted: bool) -> Result<Client, String> {
    let tls = tls::configuration(is_encrypted).map_err(|error| format!("TLS cannot be configured: {error}"))?;
    Client::builder()
        .tls_backend_preconfigured(tls)
        .https_only(is_encrypted)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .user_agent(concat!("toolwit/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_WALL_MAX)
        .build()
        .map_err(|error| format!("the HTTP client cannot be created: {error}"))
}

/// Describes a failed request by its innermost cause.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
