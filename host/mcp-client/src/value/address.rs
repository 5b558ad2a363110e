//! The check of the addresses that are contacted over HTTP.

use toolwit_http::is_loopback;
use url::Url;

/// Checks that a URL has the scheme `https`, or `http` with a loopback host. The URL must not contain a user name or a
/// password.
///
/// # Errors
/// The reason why the URL is refused.
pub(crate) fn check_address(url: &Url) -> Result<(), &'static str> {
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(url) => {}
        "http" => return Err("plain HTTP is for loopback addresses only; use `https`"),
        _ => return Err("its scheme is not `https`"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains a user name or a password");
    }
    Ok(())
}
