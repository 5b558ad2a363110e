//! The checks of the `Host` and `Origin` headers. They stop foreign web pages from sending requests to a local server, also
//! by DNS rebinding.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

/// The host names under which clients may reach a server, and the origins of web pages that may send requests.
pub(super) struct OriginRules {
    hosts: Vec<Authority>,
    origins: Vec<String>,
    /// Whether loopback names are allowed as hosts and as origins.
    allows_loopback: bool,
}

impl OriginRules {
    /// Creates the rules. Invalid hosts and origins match no request.
    pub(super) fn new(hosts: &[String], origins: &[String], allows_loopback: bool) -> Self {
        Self {
            hosts: hosts.iter().filter_map(|host| host.parse().ok()).collect(),
            origins: origins
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            allows_loopback,
        }
    }

    /// Returns whether the host of a request is allowed: in the request line and in the header `Host`, if both have one.
    pub(super) fn allows_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(HOST).iter();
        let in_header = match (values.next(), values.next()) {
            (Some(host), None) => match host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) {
                Some(host) => Some(host),
                None => return false,
            },
            (None, _) => None,
            (Some(_), Some(_)) => return false,
        };
        // The request line can contain an authority of its own, which takes precedence over the header.
        match (uri.authority(), &in_header) {
            (None, None) => false,
            (in_line, in_header) => in_line
                .into_iter()
                .chain(in_header)
                .all(|host| self.allows_authority(host)),
        }
    }

    /// Returns whether the origin of a request is allowed. A request without an `Origin` header is allowed, because
    /// programs other than browsers usually omit this header. Loopback origins are allowed if loopback hosts are allowed.
    pub(super) fn allows_origin(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(ORIGIN).iter();
        let origin = match (values.next(), values.next()) {
            (None, _) => return true,
            (Some(origin), None) => origin.to_str().unwrap_or("?").to_ascii_lowercase(),
            (Some(_), Some(_)) => return false,
        };
        let origin_host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let origin_host = origin_host.and_then(|host| host.parse::<Authority>().ok());
        self.origins.contains(&origin) || self.allows_loopback && origin_host.is_some_and(|host| is_loopback(&host))
    }

    /// Returns the origin of the web page that sent a request, if it is allowed. `None` for other programs.
    pub(super) fn page_origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        headers.get(ORIGIN).filter(|_| self.allows_origin(headers))
    }

    fn allows_authority(&self, host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let is_match = |allowed: &Authority| {
            allowed.host().eq_ignore_ascii_case(host.host())
                && (allowed.port().is_none() || allowed.port_u16() == host.port_u16())
        };
        self.allows_loopback && is_loopback(host) || self.hosts.iter().any(is_match)
    }
}

/// Returns whether the host is `localhost` or a loopback address. Subdomains of `localhost` are not allowed: an
/// untrusted DNS server could resolve them to another machine.
fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_local = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    is_local && !authority.as_str().contains('@')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn allows(rules: &OriginRules, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        rules.allows_host(&Uri::from_static("/mcp"), &headers) && rules.allows_origin(&headers)
    }

    // attack: G1
    #[test]
    fn a_local_server_answers_local_names_and_pages_only() {
        let rules = OriginRules::new(&[], &[], true);
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "127.0.0.2",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:8080",
            "LOCALHOST",
        ] {
            assert!(allows(&rules, host, None), "{host}");
        }
        for host in [
            "evil.com",
            "localhost.evil.com",
            "evil.com:8080",
            "127.0.0.1.evil.com",
            "evil.localhost",
            "10.0.0.1",
            "a@localhost",
            "",
        ] {
            assert!(!allows(&rules, host, None), "{host}");
        }
        assert!(allows(&rules, "localhost", Some("http://localhost:6274")));
        for origin in [
            "http://evil.com",
            "http://localhost.evil.com",
            "null",
            "file://",
            "http://evil.com@localhost",
        ] {
            assert!(!allows(&rules, "localhost", Some(origin)), "{origin}");
        }
    }

    // attack: G1
    #[test]
    fn a_foreign_authority_in_the_request_line_is_refused() {
        let rules = OriginRules::new(&[], &[], true);
        let allows = |line: &str, host: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.extend(host.map(|host| (HOST, host.parse::<HeaderValue>().unwrap())));
            rules.allows_host(&line.parse().unwrap(), &headers)
        };
        assert!(allows("http://localhost:8080/mcp", Some("localhost:8080")));
        assert!(allows("http://localhost/mcp", None));
        assert!(!allows("http://evil.com/mcp", Some("localhost")));
        assert!(!allows("http://localhost/mcp", Some("evil.com")));
        assert!(!allows("http://a@localhost/mcp", Some("localhost")));
        assert!(!allows("/mcp", None), "no host at all");
    }

    // attack: G1
    #[test]
    fn a_public_server_answers_its_own_names_only() {
        let hosts = ["tools.example.com".to_owned(), "other.example:8443".to_owned()];
        let rules = OriginRules::new(&hosts, &["https://app.example.com/".to_owned()], false);
        assert!(allows(&rules, "tools.example.com:443", None));
        assert!(allows(&rules, "other.example:8443", Some("https://app.example.com")));
        assert!(!allows(&rules, "other.example:80", None));
        assert!(!allows(&rules, "localhost", None));
        assert!(!allows(&rules, "tools.example.com", Some("http://localhost")));
    }
}
