//! Access requests, and the decisions on them.

use std::fmt;
use std::net::IpAddr;

use super::address::AddressClass;
use super::decide::decide;
use super::directory_rule::AccessMode;
use super::effective::{EffectiveRights, NoGrantReason, UnenforceableRule};
use super::request_target::RequestTarget;
use super::secret_rule::SecretSource;
use crate::inspect::declared_capabilities::Capability;

/// An access that a plugin attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRequest<'a> {
    /// Send an HTTP request.
    Http(&'a RequestTarget),
    /// Read or write a file or directory at a path of the guest.
    File(&'a str, AccessMode),
    /// Use a secret, in requests or as an environment variable.
    Secret(&'a str),
    /// Read an environment variable.
    Variable(&'a str),
    /// Read a setting of `wasi:config`.
    Setting(&'a str),
    /// Use the plugin's key–value store.
    KeyValue,
    /// Read a clock.
    Clock,
    /// Read random bytes.
    Random,
    /// Call another tool, by its id.
    Tool(&'a str),
    /// Read a key of the call's context.
    ContextKey(&'a str),
    /// Read or write the blackboard of the conversation.
    Blackboard(AccessMode),
    /// Ask the person who uses the host.
    Ask,
}

impl AccessRequest<'_> {
    /// Returns the capabilities that include the access. The component must declare at least one of them.
    pub(super) fn capabilities(&self) -> &'static [Capability] {
        match self {
            Self::Http(_) => &[Capability::Http],
            Self::File(..) => &[Capability::Files],
            Self::Secret(_) => &[Capability::Http, Capability::Env],
            Self::Variable(_) => &[Capability::Env],
            Self::Setting(_) => &[Capability::Config],
            Self::KeyValue => &[Capability::Keyvalue],
            Self::Clock => &[Capability::Clock],
            Self::Random => &[Capability::Random],
            Self::Tool(_) => &[Capability::Tools],
            Self::ContextKey(_) => &[Capability::Context],
            Self::Blackboard(_) => &[Capability::Blackboard],
            Self::Ask => &[Capability::Ask],
        }
    }

    /// Returns whether the access may change something outside the instance of the plugin.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Http(target) => !matches!(target.method.as_str(), "GET" | "HEAD"),
            Self::File(_, mode) | Self::Blackboard(mode) => *mode == AccessMode::ReadWrite,
            Self::KeyValue | Self::Tool(_) => true,
            Self::Secret(_)
            | Self::Variable(_)
            | Self::Setting(_)
            | Self::Clock
            | Self::Random
            | Self::ContextKey(_)
            | Self::Ask => false,
        }
    }

    /// Returns the access as an argument of `toolwit explain`.
    #[must_use]
    pub fn to_argument(&self) -> String {
        match self {
            Self::Http(target) => target.to_string(),
            Self::File(path, AccessMode::Read) => format!("read {path}"),
            Self::File(path, AccessMode::ReadWrite) => format!("write {path}"),
            Self::Secret(name) => format!("secret {name}"),
            Self::Variable(name) => format!("env {name}"),
            Self::Setting(key) => format!("config {key}"),
            Self::KeyValue => "keyvalue".to_owned(),
            Self::Clock => "clock".to_owned(),
            Self::Random => "random".to_owned(),
            Self::Tool(id) => format!("tool {id}"),
            Self::ContextKey(key) => format!("context {key}"),
            Self::Blackboard(AccessMode::Read) => "blackboard read".to_owned(),
            Self::Blackboard(AccessMode::ReadWrite) => "blackboard write".to_owned(),
            Self::Ask => "ask".to_owned(),
        }
    }

    /// Returns a rule that would allow the access: its key in the grants file, and a description of its value, as in
    /// [`MissingGrant`](toolwit_core::MissingGrant). A setting is described by its name only. The quota of the key–value store is
    /// only an example. Returns `None` if the access needs no grant, and for a secret, because its rule needs more than a name.
    pub(crate) fn needed_rule(&self) -> Option<(&'static str, String)> {
        Some(match self {
            Self::Http(target) => ("http", target.to_string()),
            Self::File(path, mode) => ("files", format!("{mode} {}", directory_of(path))),
            Self::Variable(name) => ("env", (*name).to_owned()),
            Self::Setting(key) => ("config", (*key).to_owned()),
            Self::KeyValue => ("keyvalue", "1MiB".to_owned()),
            Self::Tool(id) => ("tools", (*id).to_owned()),
            Self::ContextKey(key) => ("context", (*key).to_owned()),
            Self::Blackboard(mode) => ("blackboard", mode.to_string()),
            Self::Ask => ("ask", true.to_string()),
            Self::Secret(_) | Self::Clock | Self::Random => return None,
        })
    }
}

/// Describes the access as a verb with its object.
impl fmt::Display for AccessRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(target) => write!(f, "send `{target}`"),
            Self::File(path, AccessMode::Read) => write!(f, "read `{path}`"),
            Self::File(path, AccessMode::ReadWrite) => write!(f, "write to `{path}`"),
            Self::Secret(name) => write!(f, "use the secret `{name}`"),
            Self::Variable(name) => write!(f, "read the environment variable `{name}`"),
            Self::Setting(key) => write!(f, "read the setting `{key}`"),
            Self::KeyValue => f.write_str("use a key–value store"),
            Self::Clock => f.write_str("read a clock"),
            Self::Random => f.write_str("read random bytes"),
            Self::Tool(id) => write!(f, "call `{id}`"),
            Self::ContextKey(key) => write!(f, "read the key `{key}` of the context"),
            Self::Blackboard(AccessMode::Read) => f.write_str("read the blackboard"),
            Self::Blackboard(AccessMode::ReadWrite) => f.write_str("write to the blackboard"),
            Self::Ask => f.write_str("ask the user"),
        }
    }
}

/// Returns the directory that a rule must name to include a guest path: the parent of the path. Returns the path itself if its
/// parent is the root, and if it has no parent.
fn directory_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((directory, _)) if !directory.is_empty() => directory,
        _ => path,
    }
}

/// The decision on an [`AccessRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The access is allowed.
    Allowed {
        /// The number of the rule that allows the access, counted from 1 among the rules of its kind. Secrets that are exposed
        /// as environment variables are counted after the other environment variables. `None` if the access needs no grant.
        rule: Option<usize>,
    },
    /// The access is denied.
    Denied(Denial),
}

impl Decision {
    /// Returns whether the access is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

/// A [`Decision`] with the text of the rule that allows the access.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The rule that allows the access; `None` for a denial, and for an access that needs no grant.
    pub rule: Option<String>,
}

impl Explanation {
    /// Decides on an access, and describes the rule that allows it.
    #[must_use]
    pub fn new(rights: &EffectiveRights, request: &AccessRequest<'_>) -> Self {
        let decision = decide(rights, request);
        let rule = match decision {
            Decision::Allowed { rule: Some(number) } => rights.describe_rule(request, number),
            _ => None,
        };
        Self { decision, rule }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.decision, &self.rule) {
            (Decision::Allowed { rule: Some(number) }, Some(rule)) => write!(f, "rule {number}: {rule}"),
            (Decision::Allowed { .. }, _) => f.write_str("it needs no grant"),
            (Decision::Denied(denial), _) => denial.fmt(f),
        }
    }
}

/// The reason why an access is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The component does not import the interface that the access needs.
    NotDeclared(Capability),
    /// The rule that would allow the access cannot be enforced.
    Unenforceable(UnenforceableRule),
    /// No grant applies to the plugin.
    NoGrant(NoGrantReason),
    /// Grants apply, but do not contain a rule of this kind.
    NoRule(Capability),
    /// Grants contain rules of this kind, but none allows the access.
    NearestRule {
        /// The number of the rule, counted from 1. For an HTTP request, it is the rule whose first mismatch comes last in the
        /// order of `RequestMismatch`. For a path, it is the rule of the innermost directory that contains the path. Otherwise,
        /// it is the first rule.
        rule: usize,
        /// The part of the rule that the access does not match, such as `the host api.example.com` or `reading`.
        allows: String,
    },
    /// The path is not absolute or contains `..`, so its text does not identify a file.
    PathNotPlain,
    /// A rule allows the host name, but the name resolves to an address that is not public and not granted.
    Address {
        /// The address.
        address: IpAddr,
        /// The network that the address belongs to.
        class: AddressClass,
    },
    /// The environment variable is granted, but is not set in the host process, or is not valid Unicode there.
    MissingVariable(String),
    /// A granted secret does not exist. The plugin cannot be called until the secret exists.
    MissingSecret {
        /// The name of the secret.
        name: String,
        /// The source in which its value is looked up.
        source: SecretSource,
    },
}

impl Denial {
    /// Returns the reason for the plugin and the model. It says nothing about the grants: an attacker who can steer the model
    /// must not learn which hosts, paths or names are granted.
    pub(crate) fn reason_for_guest(&self) -> String {
        match self {
            Self::NotDeclared(_) | Self::PathNotPlain => self.to_string(),
            Self::Unenforceable(_)
            | Self::NoGrant(_)
            | Self::NoRule(_)
            | Self::NearestRule { .. }
            | Self::Address { .. }
            | Self::MissingVariable(_)
            | Self::MissingSecret { .. } => "it is not granted".to_owned(),
        }
    }
}

/// The reason for the operator, with the rules that were compared.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDeclared(capability) => {
                write!(f, "the component does not import {}", capability_noun(*capability))
            }
            Self::Unenforceable(rule) => rule.fmt(f),
            Self::NoGrant(reason) => reason.fmt(f),
            Self::NoRule(capability) => write!(f, "no rule grants {}", capability_noun(*capability)),
            Self::NearestRule { rule, allows } => write!(f, "rule {rule} allows {allows} only"),
            Self::PathNotPlain => f.write_str("the path is not absolute, or contains `..`"),
            Self::Address { address, class } => {
                write!(f, "the host has the {class} address {address}, which is not granted")
            }
            Self::MissingVariable(name) => {
                write!(
                    f,
                    "the environment variable `{name}` is not set in the host process, or is not valid Unicode"
                )
            }
            Self::MissingSecret { name, source } => write!(f, "the granted secret `{name}` does not exist in {source}"),
        }
    }
}

fn capability_noun(capability: Capability) -> &'static str {
    match capability {
        Capability::Http => "HTTP requests",
        Capability::Files => "files",
        Capability::Env => "environment variables",
        Capability::Config => "settings",
        Capability::Keyvalue => "a key–value store",
        Capability::Tools => "other tools",
        Capability::Context => "the call's context",
        Capability::Blackboard => "the blackboard",
        Capability::Ask => "questions to the user",
        Capability::Clock => "clocks",
        Capability::Random => "randomness",
    }
}
