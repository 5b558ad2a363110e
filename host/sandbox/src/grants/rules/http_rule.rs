//! Rules for HTTP requests.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::address::{AddressClass, AddressRange, canonical};
use super::error::RuleError;
use super::request_target::{RequestHost, RequestTarget, Scheme, escaped_excerpt};

/// The hosts to which a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPattern {
    /// One host.
    Exactly(RequestHost),
    /// Every host name below this name, but not the name itself: `*.example.com`.
    Below(String),
    /// Every host name, but no addresses. In the grants file, requires `any-host = true`.
    AnyName,
}

impl HostPattern {
    /// Parses a host, `*.` followed by a name, or `*`. Non-ASCII names are converted to ASCII (`xn--…`) as in browsers.
    ///
    /// # Errors
    /// For `*` at another position, `*.` in front of a top-level name or an address, and text that is not a host.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::AnyName);
        }
        let (is_suffix, host) = match text.strip_prefix("*.") {
            Some(suffix) => (true, suffix),
            None => (false, text),
        };
        let ascii = if host.is_ascii() {
            host.to_owned()
        } else {
            idna::domain_to_ascii_strict(host)
                .map_err(|_| RuleError::new(format!("`{}` is not a host", escaped_excerpt(text))))?
        };
        match (is_suffix, RequestHost::parse(&ascii)?) {
            (false, host) => Ok(Self::Exactly(host)),
            (true, RequestHost::Address(_)) => {
                Err(RuleError::new(format!("`{text}`: an address has no names below it")))
            }
            (true, RequestHost::Name(name)) if !name.contains('.') => Err(RuleError::new(format!(
                "`{text}` includes every host below a top-level name; name at least two levels"
            ))),
            (true, RequestHost::Name(name)) => Ok(Self::Below(name)),
        }
    }

    /// Returns whether the pattern includes a host.
    #[must_use]
    pub fn matches(&self, host: &RequestHost) -> bool {
        match (self, host) {
            (Self::Exactly(granted), host) => granted == host,
            (Self::Below(suffix), RequestHost::Name(name)) => name
                .strip_suffix(suffix.as_str())
                .is_some_and(|labels| labels.len() > 1 && labels.ends_with('.')),
            (Self::AnyName, RequestHost::Name(_)) => true,
            (Self::Below(_) | Self::AnyName, RequestHost::Address(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(host) => write!(f, "{host}"),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
            Self::AnyName => f.write_str("*"),
        }
    }
}

/// HTTP requests that a plugin may send: scheme, host, ports, methods and path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "HttpRuleFormat", into = "HttpRuleFormat")]
#[non_exhaustive]
pub struct HttpRule {
    /// The scheme.
    pub scheme: Scheme,
    /// The hosts.
    pub host: HostPattern,
    /// The ports.
    pub ports: Vec<u16>,
    /// The methods.
    pub methods: Vec<String>,
    /// The path. Paths below it are included.
    pub path: String,
    /// The addresses that are not public, but to which the host name may resolve.
    pub addresses: Vec<AddressRange>,
}

/// The TOML format of an [`HttpRule`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HttpRuleFormat {
    host: String,
    #[serde(default, skip_serializing_if = "is_false")]
    any_host: bool,
    #[serde(default, skip_serializing_if = "is_default_scheme")]
    scheme: Scheme,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    methods: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<AddressRange>,
}

/// The methods that a rule allows if it does not name any. They change nothing on the server.
const DEFAULT_METHODS: [&str; 2] = ["GET", "HEAD"];

impl TryFrom<HttpRuleFormat> for HttpRule {
    type Error = RuleError;

    fn try_from(format: HttpRuleFormat) -> Result<Self, RuleError> {
        let host = HostPattern::parse(&format.host)?;
        if (host == HostPattern::AnyName) != format.any_host {
            return Err(RuleError::new(
                "`host = \"*\"` and `any-host = true` are valid only together",
            ));
        }
        let ports = match (format.port, format.ports) {
            (Some(_), Some(_)) => return Err(RuleError::new("`port` and `ports` exclude each other")),
            (Some(port), None) => vec![port],
            (None, Some(ports)) => ports,
            (None, None) => vec![format.scheme.default_port()],
        };
        if ports.is_empty() || ports.contains(&0) {
            return Err(RuleError::new(
                "a rule needs at least one port, and each port must be from 1 to 65535",
            ));
        }
        let methods = format
            .methods
            .unwrap_or_else(|| DEFAULT_METHODS.map(str::to_owned).into());
        if methods.is_empty() {
            return Err(RuleError::new("`methods` is empty, so that the rule allows nothing"));
        }
        let path = format.path.unwrap_or_else(|| "/".to_owned());
        // Creating a request target checks the method and the path. The scheme and the host are placeholders.
        for method in &methods {
            let target = RequestTarget::new(method, "https", "host", &path)?;
            if !target.has_plain_path() || path.contains('?') || !path.starts_with('/') {
                return Err(RuleError::new(format!("`{path}` is not a plain path such as `/v1`")));
            }
        }
        Ok(Self {
            scheme: format.scheme,
            host,
            ports,
            methods,
            path,
            addresses: format.addresses,
        })
    }
}

impl From<HttpRule> for HttpRuleFormat {
    fn from(rule: HttpRule) -> Self {
        let (port, ports) = match rule.ports.as_slice() {
            [port] if *port == rule.scheme.default_port() => (None, None),
            [port] => (Some(*port), None),
            _ => (None, Some(rule.ports)),
        };
        Self {
            any_host: rule.host == HostPattern::AnyName,
            host: rule.host.to_string(),
            scheme: rule.scheme,
            port,
            ports,
            methods: Some(rule.methods).filter(|methods| *methods != DEFAULT_METHODS),
            path: Some(rule.path).filter(|path| path != "/"),
            addresses: rule.addresses,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default_scheme(scheme: &Scheme) -> bool {
    *scheme == Scheme::default()
}

/// The first part of a request that a rule does not allow. The parts are compared in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMismatch {
    /// The host.
    Host,
    /// The scheme.
    Scheme,
    /// The port.
    Port,
    /// The method.
    Method,
    /// The path.
    Path,
}

impl HttpRule {
    /// Parses `[METHODS] URL`, such as `GET,POST https://api.example.com/v1`, as an operator types it. The URL may consist of a
    /// host only. The defaults are HTTPS, the default port of the scheme, `GET` and `HEAD`, and all paths. A query and a fragment
    /// are ignored.
    ///
    /// # Errors
    /// For text that does not have this form, or that contains an invalid method, scheme, host, port or path.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (methods, url) = match text.trim().rsplit_once(' ') {
            Some((methods, url)) => (Some(methods.trim()), url),
            None => (None, text.trim()),
        };
        let (scheme, location) = url.split_once("://").unwrap_or(("https", url));
        let (host, port, path) = split_location(location)?;
        HttpRuleFormat {
            any_host: host == "*",
            host: host.to_owned(),
            scheme: Scheme::parse(scheme)?,
            port,
            ports: None,
            methods: methods.map(|methods| methods.split(',').map(|method| method.trim().to_owned()).collect()),
            path,
            addresses: Vec::new(),
        }
        .try_into()
    }

    /// Sets the addresses that are not public, but to which the host name may resolve.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Vec<AddressRange>) -> Self {
        self.addresses = addresses;
        self
    }

    /// Returns whether the rule allows only methods that change nothing on the server: `GET` and `HEAD`.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let is_safe = |method: &String| DEFAULT_METHODS.contains(&method.as_str());
        self.methods.iter().all(is_safe)
    }

    /// Returns the first part of a request that the rule does not allow, or `None` if the rule allows the request.
    #[must_use]
    pub fn mismatch(&self, target: &RequestTarget) -> Option<RequestMismatch> {
        if !self.host.matches(&target.host) {
            Some(RequestMismatch::Host)
        } else if self.scheme != target.scheme {
            Some(RequestMismatch::Scheme)
        } else if !self.ports.contains(&target.port) {
            Some(RequestMismatch::Port)
        } else if !self.methods.contains(&target.method) {
            Some(RequestMismatch::Method)
        } else if !target.is_below(&self.path) {
            Some(RequestMismatch::Path)
        } else {
            None
        }
    }

    /// Returns whether an allowed request may connect to an address. It may connect to a public address, to the address that is
    /// the rule's host, and to the rule's `addresses`.
    #[must_use]
    pub fn allows_address(&self, address: IpAddr) -> bool {
        let exact_host = HostPattern::Exactly(RequestHost::Address(canonical(address)));
        self.host == exact_host
            || AddressClass::of(address) == AddressClass::Public
            || self.addresses.iter().any(|range| range.contains(address))
    }
}

/// Splits `HOST[:PORT][/PATH]`. Drops the query and the fragment. An empty path and the path `/` are returned as
/// `None`.
///
/// # Errors
/// For a port that is not a number up to 65535. The host and the path are not checked.
pub(super) fn split_location(text: &str) -> Result<(&str, Option<u16>, Option<String>), RuleError> {
    let path_start = text.find(['/', '?', '#']).unwrap_or(text.len());
    let (authority, path) = text.split_at(path_start);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port: Option<u16> = port.map(str::parse).transpose().map_err(|_| {
        RuleError::new(format!(
            "`{}` is not of the form `HOST[:PORT][/PATH]`",
            text.escape_debug()
        ))
    })?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Ok((host, port, (path.len() > 1).then(|| path.to_owned())))
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        write!(
            f,
            "{} {}://{}:{}{}",
            self.methods.join(","),
            self.scheme,
            self.host,
            ports.join(","),
            self.path
        )?;
        if !self.addresses.is_empty() {
            let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
            write!(f, " at {}", addresses.join(", "))?;
        }
        Ok(())
    }
}
