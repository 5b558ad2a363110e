//! Errors of servers.

use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum length of a server's text in an error, in characters.
const QUOTED_CHARS_MAX: usize = 500;

/// Returns the error of a server that cannot be reached or used.
pub(crate) fn unavailable(server: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Io,
        Phase::Load,
        format!("the MCP server `{server}` cannot be used: {why}"),
    )
}

/// Returns the error of a server that accepts none of the available tokens. A retry with the same tokens would fail,
/// too.
pub(crate) fn unauthorized(server: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::MissingKey,
        Phase::Load,
        format!("the MCP server `{server}` cannot be used: {why}"),
    )
}

/// The error of a server that requires the user to log in, or to log in again. An error of a call or a connection that
/// a login can fix has this error as its [source](std::error::Error::source).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` requires a login")]
#[non_exhaustive]
pub struct LoginRequired {
    /// The name of the server.
    pub server: String,
    /// The scopes that the login needs in addition to those that it requests by default.
    pub scopes: Vec<String>,
}

/// Returns the error of a server that requires a login. `why` must not contain secrets.
pub(crate) fn login_required(required: LoginRequired, why: &str) -> Error {
    unauthorized(&required.server, why)
        .with_suggestion("log in with `LoginRequest`, or set `bearer` or `oauth` of the server")
        .with_source(required)
}

/// Returns the error of a server that takes too long.
pub(crate) fn too_slow(server: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        Phase::Load,
        format!("the MCP server `{server}` cannot be used: {why}"),
    )
}

/// Returns the printable beginning of an untrusted text, for an error message.
pub(crate) fn quoted(text: &str) -> String {
    let printable = printable(text);
    let mut quoted: String = printable.trim().chars().take(QUOTED_CHARS_MAX).collect();
    if quoted.len() < printable.trim().len() {
        quoted.push('…');
    }
    quoted
}
