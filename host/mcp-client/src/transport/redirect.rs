//! Redirects of a server to another path.

use url::Url;

/// Returns the address to which a server redirects, if it has the same scheme, host and port. A request to another origin could
/// reveal the headers and the arguments of the request to another server.
pub(super) fn same_origin_target(address: &str, location: &str) -> Option<String> {
    let address = Url::parse(address).ok()?;
    let target = address.join(location).ok().filter(|_| !location.is_empty())?;
    let has_credentials = !target.username().is_empty() || target.password().is_some();
    (target.origin() == address.origin() && !has_credentials).then(|| target.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: G9
    #[test]
    fn only_a_redirect_within_the_origin_has_a_target() {
        let target = |location: &str| same_origin_target("https://example.com/mcp", location);
        for location in [
            "/mcp/",
            "mcp/",
            "https://example.com/mcp/",
            "https://example.com:443/mcp/",
        ] {
            assert_eq!(
                target(location).as_deref(),
                Some("https://example.com/mcp/"),
                "{location}"
            );
        }
        for location in [
            "",
            "http://example.com/mcp/",
            "https://example.com:8443/mcp/",
            "https://other.example.com/mcp/",
            "//other.example/mcp/",
            "https://user:password@example.com/mcp/",
            "file:///mcp",
        ] {
            assert_eq!(target(location), None, "{location}");
        }
    }
}
