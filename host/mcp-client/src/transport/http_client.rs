//! The HTTP client of all requests to servers and issuers. It follows no redirects, uses no proxy, and does not retry.

use reqwest::Client;

use toolwit_core::limits::CONNECT_WALL_MAX;
use toolwit_http::{Encryption, client_builder};

/// Creates a client for `https` requests, or for `http` requests to a loopback address.
///
/// # Errors
/// The reason why TLS cannot be configured.
pub(super) fn client(is_encrypted: bool) -> Result<Client, String> {
    let encryption = if is_encrypted {
        Encryption::Required
    } else {
        Encryption::None
    };
    client_builder(encryption)
        .map_err(|error| error.to_string())?
        .connect_timeout(CONNECT_WALL_MAX)
        .build()
        .map_err(|error| format!("the HTTP client cannot be created: {error}"))
}

/// Returns the innermost cause of a failed request, as text.
pub(super) fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
