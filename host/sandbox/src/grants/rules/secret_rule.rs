//! Which secret goes where.

use std::fmt;

use serde::Deserialize;

use super::error::RuleError;
use super::http_rule::HostPattern;
use super::request_target::{RequestTarget, Scheme};

/// Where the value of a secret is looked up, at each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SecretSource {
    /// In the operator's store (`toolwit secret`).
    #[default]
    Store,
    /// In the environment of the host's process.
    Environment,
    /// In the conversation's context, where an end user's key is.
    Conversation,
}

/// Where in a request a secret is placed. What the guest put there is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretPlacement {
    /// In this header.
    Header(String),
    /// As `Authorization: Bearer …`.
    Bearer,
    /// As `Authorization: Basic …`; the secret is `user:password`.
    Basic,
    /// In this field of the query.
    Query(String),
}

/// Requests in which a secret is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretTarget {
    /// The host, and no pattern wider than a host.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// The path, and all that lies below it.
    pub path: String,
    /// Where in the request.
    pub placement: SecretPlacement,
}

/// A secret of a plugin: its name, where its value is, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSecretRule")]
#[non_exhaustive]
pub struct SecretRule {
    /// The name under which the value is looked up.
    pub name: String,
    /// Where.
    pub source: SecretSource,
    /// The requests that carry it.
    pub target: Option<SecretTarget>,
    /// The environment variable in which the guest itself sees the value. Only with `expose = true`.
    pub exposed_as: Option<String>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawSecretRule {
    name: String,
    #[serde(default)]
    from: SecretSource,
    host: Option<String>,
    port: Option<u16>,
    path: Option<String>,
    header: Option<String>,
    query: Option<String>,
    #[serde(default)]
    bearer: bool,
    #[serde(default)]
    basic: bool,
    #[serde(default)]
    expose: bool,
    variable: Option<String>,
}

impl TryFrom<RawSecretRule> for SecretRule {
    type Error = RuleError;

    fn try_from(raw: RawSecretRule) -> Result<Self, RuleError> {
        check_name(&raw.name)?;
        if raw.expose != raw.variable.is_some() {
            return Err(RuleError::new(
                "the guest sees a secret with `expose = true` and `variable = \"NAME\"` together",
            ));
        }
        if let Some(variable) = &raw.variable {
            check_variable(variable)?;
        }
        let placements: Vec<_> = [
            raw.header
                .map(|header| SecretPlacement::Header(header.to_ascii_lowercase())),
            raw.query.map(SecretPlacement::Query),
            raw.bearer.then_some(SecretPlacement::Bearer),
            raw.basic.then_some(SecretPlacement::Basic),
        ]
        .into_iter()
        .flatten()
        .collect();
        let target = match (raw.host, placements.as_slice()) {
            (None, []) if raw.port.is_none() && raw.path.is_none() => None,
            (Some(host), [placement]) => Some(target(&host, raw.port, raw.path, placement)?),
            _ => {
                return Err(RuleError::new(
                    "a secret goes to one `host`, in one of `header`, `query`, `bearer` and `basic`",
                ));
            }
        };
        if target.is_none() && !raw.expose {
            return Err(RuleError::new("the secret goes nowhere: say to which `host`"));
        }
        Ok(Self {
            name: raw.name,
            source: raw.from,
            target,
            exposed_as: raw.variable,
        })
    }
}

fn target(
    host: &str,
    port: Option<u16>,
    path: Option<String>,
    placement: &SecretPlacement,
) -> Result<SecretTarget, RuleError> {
    let host = HostPattern::parse(host)?;
    if !matches!(host, HostPattern::Exactly(_)) {
        return Err(RuleError::new("a secret goes to one host, without a star"));
    }
    let port = port.unwrap_or(443);
    let path = path.unwrap_or_else(|| "/".to_owned());
    let probe = RequestTarget::new("GET", "https", "probe", &path)?;
    if port == 0 || !probe.has_plain_path() || path.contains('?') || !path.starts_with('/') {
        return Err(RuleError::new(
            "a secret goes to a port from 1 to 65535 and a plain path such as `/v1`",
        ));
    }
    match placement {
        SecretPlacement::Header(name) if !is_free_header(name) => {
            Err(RuleError::new(format!("no secret can go into the header `{name}`")))
        }
        SecretPlacement::Query(name) if name.is_empty() || !name.bytes().all(is_plain) => Err(RuleError::new(format!(
            "`{}` is no field of a query",
            name.escape_debug()
        ))),
        placement => Ok(SecretTarget {
            host,
            port,
            path,
            placement: placement.clone(),
        }),
    }
}

/// Headers that say how a message is framed or to whom it goes are the gate's alone.
fn is_free_header(name: &str) -> bool {
    const TAKEN: [&str; 9] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    !name.is_empty() && name.bytes().all(is_plain) && !TAKEN.contains(&name) && !name.starts_with("proxy-")
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Refuses names that would not be the same everywhere: in files, flags and the environment.
///
/// # Errors
/// For anything but letters, digits, `-`, `_` and `.`.
pub fn check_name(name: &str) -> Result<(), RuleError> {
    let fits = |byte: u8| is_plain(byte) || byte == b'.';
    if name.is_empty() || name.len() > 128 || !name.bytes().all(fits) {
        return Err(RuleError::new(format!(
            "`{}` is no name: use letters, digits, `-`, `_` and `.`",
            super::request_target::shown(name)
        )));
    }
    Ok(())
}

/// Refuses what is no name of an environment variable.
pub(crate) fn check_variable(name: &str) -> Result<(), RuleError> {
    let starts_right = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !starts_right || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(RuleError::new(format!(
            "`{}` is no environment variable",
            super::request_target::shown(name)
        )));
    }
    Ok(())
}

impl SecretTarget {
    /// Tells whether the secret belongs into this request. Never without TLS.
    #[must_use]
    pub fn matches(&self, request: &RequestTarget) -> bool {
        let path = request.path.split('?').next().unwrap_or_default();
        let rest = path.strip_prefix(self.path.trim_end_matches('/'));
        let is_below = self.path == "/"
            || (request.has_plain_path() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        request.scheme == Scheme::Https && self.host.matches(&request.host) && self.port == request.port && is_below
    }
}

impl fmt::Display for SecretRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(target) = &self.target {
            let place = match &target.placement {
                SecretPlacement::Header(name) => format!("header `{name}`"),
                SecretPlacement::Query(name) => format!("query field `{name}`"),
                SecretPlacement::Bearer => "bearer token".to_owned(),
                SecretPlacement::Basic => "basic credentials".to_owned(),
            };
            write!(
                f,
                " to https://{}:{}{} as {place}",
                target.host, target.port, target.path
            )?;
        }
        match &self.exposed_as {
            Some(variable) => write!(f, ", seen by the guest as `{variable}`"),
            None => Ok(()),
        }
    }
}
