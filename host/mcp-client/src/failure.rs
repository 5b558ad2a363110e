//! Errors of servers that cannot be used, and quotations of untrusted text in errors.

use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum length of an untrusted text in an error, in characters.
const QUOTED_CHARS_MAX: usize = 500;

/// Returns the error of a server that cannot be reached or used.
pub(crate) fn unavailable(server: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Io,
        Phase::Load,
        format!("the MCP server `{server}` cannot be used: {why}"),
    )
}

/// Returns the error of a server for which there are no credentials that it accepts. Connecting is then not retried,
/// because the same credentials would be refused again.
pub(crate) fn unauthorized(server: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::MissingKey,
        Phase::Load,
        format!("the MCP server `{server}` cannot be used: {why}"),
    )
}

/// The error of a server that requires the user to log in, or to log in again. If a login can fix the error of a call or a
/// connection, the [source](std::error::Error::source) of that error is a `LoginRequired`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` requires a login")]
#[non_exhaustive]
pub struct LoginRequired {
    /// The name of the server.
    pub server: String,
    /// The scopes that the login must request in addition to its default scopes.
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
