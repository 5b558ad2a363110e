//! The target of a request: scheme, host, port, method and path, parsed once and strictly.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::address::canonical;
use super::error::RuleError;
use super::plain_path::is_plain_path;

/// The scheme of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    #[default]
    Https,
}

impl Scheme {
    /// Parses `http` or `https`, in lower case.
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        match text {
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            scheme => Err(RuleError::new(format!(
                "the scheme `{}` is not `http` or `https`",
                escaped_excerpt(scheme)
            ))),
        }
    }

    /// Returns the default port of the scheme.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

/// A host to connect to: a name in lower case without a trailing dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestHost {
    /// A DNS name, in ASCII.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl RequestHost {
    /// Parses a host. A name must be in ASCII, with `xn--…` for other characters. An address must have its usual form: `127.1`,
    /// `0x7f000001` and `2130706433` are not accepted as addresses or names.
    ///
    /// # Errors
    /// For text that is not a host, or that two parsers could interpret as different hosts.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let address = address.parse::<std::net::Ipv6Addr>();
            let invalid = |_| RuleError::new(format!("`{}` is not an IPv6 address", escaped_excerpt(text)));
            let address = address.map_err(invalid)?;
            return Ok(Self::Address(canonical(IpAddr::V6(address))));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return Err(RuleError::new(format!("`{}` is not a host", escaped_excerpt(text))));
        }
        let is_label = |label: &str| {
            let is_label_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_label_byte)
        };
        if !name.split('.').all(is_label) {
            return Err(RuleError::new(format!("`{}` is not a host", escaped_excerpt(text))));
        }
        // A host whose last label is a number is an IPv4 address, as in the URL standard.
        let last_label = name.rsplit('.').next().unwrap_or_default();
        let ends_in_number = last_label.bytes().all(|byte| byte.is_ascii_digit())
            || last_label
                .strip_prefix("0x")
                .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !ends_in_number {
            return Ok(Self::Name(name));
        }
        match name.parse::<Ipv4Addr>() {
            Ok(address) if !text.ends_with('.') => Ok(Self::Address(IpAddr::V4(address))),
            _ => Err(RuleError::new(format!(
                "`{text}` is an address in an unusual form; write it as four numbers"
            ))),
        }
    }
}

impl fmt::Display for RequestHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The target of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTarget {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: RequestHost,
    /// The port, never 0.
    pub port: u16,
    /// The method, as it is sent.
    pub method: String,
    /// The path, which starts with `/`, and the query if the request has one.
    pub path: String,
}

impl RequestTarget {
    /// Parses the parts of a request. `authority` is a host with an optional port. `path` may have a query. An empty path is
    /// replaced by `/`.
    ///
    /// # Errors
    /// For a scheme other than `http` and `https`; for an authority that is not a host with an optional port from 1 to 65535;
    /// for text that is not a method, and the methods that do not request a resource (`CONNECT`, `TRACE`); and for a path
    /// that starts with a character other than `/` and `?`, or has characters that a path cannot have, such as `#`.
    pub fn new(method: &str, scheme: &str, authority: &str, path: &str) -> Result<Self, RuleError> {
        let scheme = Scheme::parse(scheme)?;
        let (host, port) = split_authority(authority)?;
        check_method(method)?;
        let path = if path.is_empty() { "/" } else { path };
        if !path.starts_with(['/', '?']) || path.bytes().any(|byte| !(0x21..=0x7e).contains(&byte) || byte == b'#') {
            return Err(RuleError::new(
                "the path does not start with `/`, or contains characters that a path cannot have",
            ));
        }
        Ok(Self {
            scheme,
            host: RequestHost::parse(host)?,
            port: port.unwrap_or_else(|| scheme.default_port()),
            method: method.to_owned(),
            path: if path.starts_with('?') {
                format!("/{path}")
            } else {
                path.to_owned()
            },
        })
    }

    /// Parses `GET https://example.com:8443/a`, as an operator types it. The default method is `GET`.
    ///
    /// # Errors
    /// For text without `://`, and those of [`RequestTarget::new`].
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (method, url) = match text.trim().split_once(' ') {
            Some((method, url)) => (method, url.trim_start()),
            None => ("GET", text.trim()),
        };
        let (scheme, location) = url.split_once("://").ok_or_else(|| {
            RuleError::new(format!(
                "`{}` is not a URL such as `https://example.com/a`",
                escaped_excerpt(url)
            ))
        })?;
        let authority_end = location.find(['/', '?', '#', '\\']).unwrap_or(location.len());
        let (authority, path) = location.split_at(authority_end);
        Self::new(method, &scheme.to_ascii_lowercase(), authority, path)
    }

    /// Returns the host and port as in the `Host` header, without the scheme's default port.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Returns whether every server interprets the path in the same way. Only such a path can be compared with a prefix.
    #[must_use]
    pub fn has_plain_path(&self) -> bool {
        is_plain_path(self.path_without_query())
    }

    /// Returns whether the path is `prefix` or is below it. Compares complete segments. A path that is not plain is below `/`
    /// only.
    #[must_use]
    pub fn is_below(&self, prefix: &str) -> bool {
        if prefix == "/" {
            return true;
        }
        let below_prefix = self.path_without_query().strip_prefix(prefix.trim_end_matches('/'));
        self.has_plain_path() && below_prefix.is_some_and(|path| path.is_empty() || path.starts_with('/'))
    }

    fn path_without_query(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query is omitted, because it may contain secrets.
        let path = self.path_without_query();
        write!(f, "{} {}://{}{path}", self.method, self.scheme, self.authority())
    }
}

fn split_authority(authority: &str) -> Result<(&str, Option<u16>), RuleError> {
    let invalid = |reason: &str| RuleError::new(format!("`{}` {reason}", escaped_excerpt(authority)));
    if authority.contains('@') {
        return Err(invalid("names a user; write the host alone"));
    }
    if authority
        .bytes()
        .any(|byte| !(0x21..=0x7e).contains(&byte) || matches!(byte, b'%' | b'\\' | b'/' | b'?' | b'#'))
    {
        return Err(invalid("contains characters that a host cannot have"));
    }
    let (host, port) = match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => (&authority[..colon], Some(&authority[colon + 1..])),
        _ => (authority, None),
    };
    let Some(port) = port else {
        return Ok((host, None));
    };
    // Parsing a number would also accept a leading `+`.
    let has_only_digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if has_only_digits && number > 0 => Ok((host, Some(number))),
        _ => Err(invalid("has no port from 1 to 65535")),
    }
}

fn check_method(method: &str) -> Result<(), RuleError> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if method.is_empty() || method.len() > 32 || !method.bytes().all(is_token) {
        return Err(RuleError::new(format!("`{}` is not a method", escaped_excerpt(method))));
    }
    // `CONNECT` opens a tunnel, `TRACE` echoes the request. Some servers ignore the case of a method.
    if ["CONNECT", "TRACE"]
        .iter()
        .any(|refused| method.eq_ignore_ascii_case(refused))
    {
        return Err(RuleError::new(format!("the method `{method}` is never allowed")));
    }
    Ok(())
}

/// Formats the first 80 characters of untrusted text for a message. Escapes control characters, quotes and backslashes.
pub(crate) fn escaped_excerpt(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
