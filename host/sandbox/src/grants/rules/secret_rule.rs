//! Rules for secrets: the source of a secret's value, and the requests or the environment variable that contain the value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::RuleError;
use super::http_rule::{HostPattern, split_location};
use super::request_target::{RequestTarget, Scheme, escaped_excerpt};

/// The source in which the value of a secret is looked up at each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// The secrets of the application, then the operator's secret store.
    #[default]
    Store,
    /// The environment of the host process.
    Environment,
    /// The context of the conversation, for secrets of the end user.
    Conversation,
}

impl SecretSource {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "the secret store",
            Self::Environment => "the environment of the host",
            Self::Conversation => "the context of the conversation",
        })
    }
}

/// The part of a request in which the host sends a secret. The host overwrites the guest's value for this part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlacement {
    /// The header with this name, in lower case.
    Header(String),
    /// `Authorization: Bearer …`.
    Bearer,
    /// `Authorization: Basic …`. The secret is `user:password`.
    Basic,
    /// The field of the query with this name.
    Query(String),
}

impl FromStr for SecretPlacement {
    type Err = RuleError;

    /// Parses `bearer`, `basic`, `header:NAME` or `query:NAME`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.split_once(':') {
            Some(("header", name)) => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("query", name)) => Ok(Self::Query(name.to_owned())),
            None if text == "bearer" => Ok(Self::Bearer),
            None if text == "basic" => Ok(Self::Basic),
            _ => Err(RuleError::new(format!(
                "`{}` is not `bearer`, `basic`, `header:NAME` or `query:NAME`",
                text.escape_debug()
            ))),
        }
    }
}

impl fmt::Display for SecretPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header `{name}`"),
            Self::Query(name) => write!(f, "query field `{name}`"),
            Self::Bearer => f.write_str("bearer token"),
            Self::Basic => f.write_str("basic credentials"),
        }
    }
}

/// The requests with which a secret is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretTarget {
    /// The host. Always [`HostPattern::Exactly`].
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// The path. Paths below it are included.
    pub path: String,
    /// The part of the request that carries the secret.
    pub placement: SecretPlacement,
}

/// A secret that a plugin may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SecretRuleFormat", into = "SecretRuleFormat")]
#[non_exhaustive]
pub struct SecretRule {
    /// The name under which the value is looked up.
    pub name: String,
    /// The source in which the value is looked up.
    pub source: SecretSource,
    /// The requests with which the secret is sent; `None` if it is only exposed in a variable.
    pub target: Option<SecretTarget>,
    /// The environment variable in which the guest reads the value; `None` if the guest never sees the value. In the grants file,
    /// requires `expose = true`.
    pub exposed_as: Option<String>,
}

/// The TOML format of a [`SecretRule`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SecretRuleFormat {
    name: String,
    #[serde(default, skip_serializing_if = "SecretSource::is_default")]
    from: SecretSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    bearer: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    basic: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    expose: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl TryFrom<SecretRuleFormat> for SecretRule {
    type Error = RuleError;

    fn try_from(format: SecretRuleFormat) -> Result<Self, RuleError> {
        check_name(&format.name)?;
        if format.expose != format.variable.is_some() {
            return Err(RuleError::new(
                "`expose = true` and `variable = \"NAME\"` are valid only together",
            ));
        }
        if let Some(variable) = &format.variable {
            check_variable_name(variable)?;
        }
        let placements: Vec<_> = [
            format
                .header
                .map(|header| SecretPlacement::Header(header.to_ascii_lowercase())),
            format.query.map(SecretPlacement::Query),
            format.bearer.then_some(SecretPlacement::Bearer),
            format.basic.then_some(SecretPlacement::Basic),
        ]
        .into_iter()
        .flatten()
        .collect();
        let target = match (format.host, placements.as_slice()) {
            (None, []) if format.port.is_none() && format.path.is_none() => None,
            (Some(host), [placement]) => Some(SecretTarget::new(&host, format.port, format.path, placement)?),
            _ => {
                return Err(RuleError::new(
                    "a secret that is sent needs one `host` and one of `header`, `query`, `bearer` and `basic`",
                ));
            }
        };
        if target.is_none() && !format.expose {
            return Err(RuleError::new(
                "the secret is never used: name the `host` to which it is sent",
            ));
        }
        Ok(Self {
            name: format.name,
            source: format.from,
            target,
            exposed_as: format.variable,
        })
    }
}

impl From<SecretRule> for SecretRuleFormat {
    fn from(rule: SecretRule) -> Self {
        let target = rule.target.as_ref();
        let placement = target.map(|target| target.placement.clone());
        Self {
            name: rule.name,
            from: rule.source,
            host: target.map(|target| target.host.to_string()),
            port: target.map(|target| target.port).filter(|port| *port != HTTPS_PORT),
            path: target.map(|target| target.path.clone()).filter(|path| path != "/"),
            bearer: placement == Some(SecretPlacement::Bearer),
            basic: placement == Some(SecretPlacement::Basic),
            header: match &placement {
                Some(SecretPlacement::Header(name)) => Some(name.clone()),
                _ => None,
            },
            query: match placement {
                Some(SecretPlacement::Query(name)) => Some(name),
                _ => None,
            },
            expose: rule.exposed_as.is_some(),
            variable: rule.exposed_as,
        }
    }
}

impl SecretRule {
    /// Creates a rule that sends a secret of [`SecretSource::Store`] to `[https://]HOST[:PORT][/PATH]`, always over HTTPS.
    ///
    /// # Errors
    /// For a name, a location or a placement that is not valid, and for a host with `*`.
    pub fn sent_to(name: &str, location: &str, placement: SecretPlacement) -> Result<Self, RuleError> {
        check_name(name)?;
        let (host, port, path) = split_location(location.strip_prefix("https://").unwrap_or(location))?;
        Ok(Self {
            name: name.to_owned(),
            source: SecretSource::Store,
            target: Some(SecretTarget::new(host, port, path, &placement)?),
            exposed_as: None,
        })
    }
}

const HTTPS_PORT: u16 = 443;

impl SecretTarget {
    fn new(
        host: &str,
        port: Option<u16>,
        path: Option<String>,
        placement: &SecretPlacement,
    ) -> Result<Self, RuleError> {
        let host = HostPattern::parse(host)?;
        if !matches!(host, HostPattern::Exactly(_)) {
            return Err(RuleError::new(
                "a secret is sent to one host, so the host must not contain `*`",
            ));
        }
        let port = port.unwrap_or(HTTPS_PORT);
        let path = path.unwrap_or_else(|| "/".to_owned());
        // Creating a request target checks the path. The method, the scheme and the host are placeholders.
        let target = RequestTarget::new("GET", "https", "host", &path)?;
        if port == 0 || !target.has_plain_path() || path.contains('?') || !path.starts_with('/') {
            return Err(RuleError::new(
                "a secret needs a port from 1 to 65535 and a plain path such as `/v1`",
            ));
        }
        let placement = match placement {
            SecretPlacement::Header(name) => SecretPlacement::Header(name.to_ascii_lowercase()),
            placement => placement.clone(),
        };
        match placement {
            SecretPlacement::Header(name) if !can_carry_secret(&name) => {
                let name = name.escape_debug();
                Err(RuleError::new(format!("the header `{name}` cannot carry a secret")))
            }
            SecretPlacement::Query(name) if name.is_empty() || !name.bytes().all(is_identifier_byte) => Err(
                RuleError::new(format!("`{}` is not the name of a query field", name.escape_debug())),
            ),
            placement => Ok(Self {
                host,
                port,
                path,
                placement,
            }),
        }
    }

    /// Returns whether the secret is sent with a request. A secret is never sent without TLS.
    #[must_use]
    pub fn matches(&self, request: &RequestTarget) -> bool {
        request.scheme == Scheme::Https
            && self.host.matches(&request.host)
            && self.port == request.port
            && request.is_below(&self.path)
    }
}

/// Returns whether a secret may be sent in the header of this name, which must be in lower case. Headers that frame or route a
/// message are reserved for the host.
fn can_carry_secret(name: &str) -> bool {
    const RESERVED: [&str; 9] = [
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
    !name.is_empty() && name.bytes().all(is_identifier_byte) && !RESERVED.contains(&name) && !name.starts_with("proxy-")
}

fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Checks the name of a plugin or a secret. A valid name can be written without quotes in files and command lines.
///
/// # Errors
/// For an empty name, more than 128 bytes, characters other than ASCII letters, digits, `-`, `_` and `.`, and a dot at the
/// beginning.
pub fn check_name(name: &str) -> Result<(), RuleError> {
    let is_name_byte = |byte: u8| is_identifier_byte(byte) || byte == b'.';
    if name.is_empty() || name.len() > 128 || !name.bytes().all(is_name_byte) || name.starts_with('.') {
        return Err(RuleError::new(format!(
            "`{}` is not a name: use at most 128 letters, digits, `-`, `_` and, after the first character, `.`",
            escaped_excerpt(name)
        )));
    }
    Ok(())
}

/// Checks the name of an environment variable: ASCII letters, digits and `_`, without a digit at the beginning.
pub(crate) fn check_variable_name(name: &str) -> Result<(), RuleError> {
    let has_valid_start = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !has_valid_start || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(RuleError::new(format!(
            "`{}` is not the name of an environment variable",
            escaped_excerpt(name)
        )));
    }
    Ok(())
}

impl fmt::Display for SecretRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(target) = &self.target {
            let SecretTarget {
                host,
                port,
                path,
                placement,
            } = target;
            write!(f, " to https://{host}:{port}{path} as {placement}")?;
        }
        match &self.exposed_as {
            Some(variable) => write!(f, ", visible to the guest as `{variable}`"),
            None => Ok(()),
        }
    }
}
