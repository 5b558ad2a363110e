//! Which requests a grant allows.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;

use super::address::{AddressClass, AddressRange, canonical};
use super::error::RuleError;
use super::request_target::{RequestHost, RequestTarget, Scheme};

/// The hosts that a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPattern {
    /// This host.
    Exactly(RequestHost),
    /// Every name below this one, and not this one: `*.example.com`.
    Below(String),
    /// Every name, and no address. Only with `any-host = true`.
    AnyName,
}

impl HostPattern {
    /// Reads a host, or `*.` and a name. Names in other scripts are turned into ASCII as browsers do.
    ///
    /// # Errors
    /// For a star anywhere else, a star below a top-level name, and what is no host.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::AnyName);
        }
        let (is_suffix, host) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let ascii = if host.is_ascii() {
            host.to_owned()
        } else {
            idna::domain_to_ascii_strict(host).map_err(|_| RuleError::new(format!("`{text}` is no host")))?
        };
        match (is_suffix, RequestHost::parse(&ascii)?) {
            (false, host) => Ok(Self::Exactly(host)),
            (true, RequestHost::Address(_)) => {
                Err(RuleError::new(format!("`{text}`: an address has nothing below it")))
            }
            (true, RequestHost::Name(name)) if !name.contains('.') => Err(RuleError::new(format!(
                "`{text}` is every host below a top-level name; name at least two levels"
            ))),
            (true, RequestHost::Name(name)) => Ok(Self::Below(name)),
        }
    }

    /// Tells whether it speaks of this host.
    #[must_use]
    pub fn matches(&self, host: &RequestHost) -> bool {
        match (self, host) {
            (Self::Exactly(granted), host) => granted == host,
            (Self::Below(suffix), RequestHost::Name(name)) => name
                .strip_suffix(suffix.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
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

/// Requests that a plugin may make: scheme, host, ports, methods and path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawHostRule")]
#[non_exhaustive]
pub struct HttpRule {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: HostPattern,
    /// The ports.
    pub ports: Vec<u16>,
    /// The methods.
    pub methods: Vec<String>,
    /// The path, and all that lies below it.
    pub path: String,
    /// Addresses besides public ones to which a name may lead.
    pub addresses: Vec<AddressRange>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawHostRule {
    host: String,
    #[serde(default)]
    any_host: bool,
    #[serde(default)]
    scheme: Scheme,
    port: Option<u16>,
    ports: Option<Vec<u16>>,
    methods: Option<Vec<String>>,
    path: Option<String>,
    #[serde(default)]
    addresses: Vec<AddressRange>,
}

impl TryFrom<RawHostRule> for HttpRule {
    type Error = RuleError;

    fn try_from(raw: RawHostRule) -> Result<Self, RuleError> {
        let host = HostPattern::parse(&raw.host)?;
        if (host == HostPattern::AnyName) != raw.any_host {
            return Err(RuleError::new(
                "every host is `host = \"*\"` together with `any-host = true`",
            ));
        }
        let ports = match (raw.port, raw.ports) {
            (Some(_), Some(_)) => return Err(RuleError::new("`port` and `ports` say the same; keep one")),
            (Some(port), None) => vec![port],
            (None, Some(ports)) => ports,
            (None, None) => vec![raw.scheme.default_port()],
        };
        if ports.is_empty() || ports.contains(&0) {
            return Err(RuleError::new("a port is a number from 1 to 65535"));
        }
        let methods = raw.methods.unwrap_or_else(|| vec!["GET".to_owned(), "HEAD".to_owned()]);
        if methods.is_empty() {
            return Err(RuleError::new("`methods` is empty, so that the rule allows nothing"));
        }
        let path = raw.path.unwrap_or_else(|| "/".to_owned());
        let rule = Self {
            scheme: raw.scheme,
            host,
            ports,
            methods,
            path,
            addresses: raw.addresses,
        };
        for method in &rule.methods {
            let probe = RequestTarget::new(method, "https", "probe", &rule.path)?;
            if !probe.has_plain_path() || rule.path.contains('?') || !rule.path.starts_with('/') {
                return Err(RuleError::new(format!(
                    "`{}` is no plain path such as `/v1`",
                    rule.path
                )));
            }
        }
        Ok(rule)
    }
}

/// What about a request a rule does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestMismatch {
    /// Another host.
    Host,
    /// Another scheme.
    Scheme,
    /// Another port.
    Port,
    /// Another method.
    Method,
    /// A path outside.
    Path,
}

impl HttpRule {
    /// Returns what about a request it does not allow, the widest difference first; `None` when it allows it.
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
        } else if !is_below(&self.path, target) {
            Some(RequestMismatch::Path)
        } else {
            None
        }
    }

    /// Tells whether a request that it allows may go to this address: a public one, the one that the rule names, or one of
    /// its `addresses`.
    #[must_use]
    pub fn allows_address(&self, address: IpAddr) -> bool {
        let named = HostPattern::Exactly(RequestHost::Address(canonical(address)));
        self.host == named
            || AddressClass::of(address) == AddressClass::Public
            || self.addresses.iter().any(|range| range.contains(address))
    }
}

/// Tells whether a path is a prefix or lies below it, on whole segments.
fn is_below(prefix: &str, target: &RequestTarget) -> bool {
    if prefix == "/" {
        return true;
    }
    let path = target.path.split('?').next().unwrap_or_default();
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    target.has_plain_path() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
