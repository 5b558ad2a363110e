//! The one answer to "may it?", for the gates and for `toolwit explain`.

use std::fmt;
use std::net::IpAddr;
use std::path::{Component, Path};

use super::address::AddressClass;
use super::directory_rule::AccessMode;
use super::effective::{EffectiveRights, NoGrantReason};
use super::http_rule::{HttpRule, RequestMismatch};
use super::request_target::RequestTarget;
use crate::inspect::declared::Capability;

/// What a plugin wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessRequest<'a> {
    /// Make this request.
    Http(&'a RequestTarget),
    /// Read or write this guest path.
    File(&'a str, AccessMode),
    /// Read this environment variable.
    Variable(&'a str),
    /// Read this setting.
    Setting(&'a str),
    /// Use its key–value store.
    KeyValue,
    /// Call this tool.
    Tool(&'a str),
    /// Read this key of the call's context.
    ContextKey(&'a str),
    /// Read or write what the tools of a conversation share.
    Blackboard(AccessMode),
}

/// Whether it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may, by this rule; rules of a kind count from 1.
    Allowed {
        /// Which rule of its kind allows it.
        rule: usize,
    },
    /// It may not.
    Denied(Denial),
}

/// Why a plugin may not do what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The component does not import what it would need.
    NotDeclared(Capability),
    /// Nothing is granted to it.
    NoGrantReason(NoGrantReason),
    /// Something is granted, and nothing of this kind.
    NothingOfItsKind(Capability),
    /// No rule fits; the nearest and what about it does not fit.
    NearestRule {
        /// Counts from 1.
        rule: usize,
        /// What the rule allows.
        allows: String,
    },
    /// A rule allows the name, and the address behind it belongs to somebody else.
    Address {
        /// The address.
        address: IpAddr,
        /// What it belongs to.
        class: AddressClass,
    },
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDeclared(capability) => write!(f, "the component does not import {}", noun(*capability)),
            Self::NoGrantReason(NoGrantReason::NoGrant) => f.write_str("nothing is granted to it"),
            Self::NoGrantReason(NoGrantReason::OtherDigest) => {
                f.write_str("it was granted to another version of the plugin")
            }
            Self::NoGrantReason(NoGrantReason::UsedUp) => f.write_str("the grant was used up"),
            Self::NoGrantReason(NoGrantReason::Unreadable) => {
                f.write_str("the file of grants cannot be read, so that nothing is granted")
            }
            Self::NothingOfItsKind(capability) => write!(f, "no rule grants it {}", noun(*capability)),
            Self::NearestRule { rule, allows } => write!(f, "rule {rule} allows {allows} only"),
            Self::Address { address, class } => {
                write!(f, "the host has the {class} address {address}, which is not granted")
            }
        }
    }
}

fn noun(capability: Capability) -> &'static str {
    match capability {
        Capability::Http => "HTTP requests",
        Capability::Files => "files",
        Capability::Env => "environment variables",
        Capability::Config => "settings",
        Capability::Keyvalue => "a key–value store",
        Capability::Tools => "other tools",
        Capability::Context => "the call's context",
        Capability::Blackboard => "the blackboard",
        Capability::Clock => "clocks",
        Capability::Random => "randomness",
    }
}

/// Decides. Pure: the gates ask it on every access, and so does `explain`.
#[must_use]
pub fn decide(effective: &EffectiveRights, access: &AccessRequest<'_>) -> Decision {
    let capability = match access {
        AccessRequest::Http(_) => Capability::Http,
        AccessRequest::File(..) => Capability::Files,
        AccessRequest::Variable(_) => Capability::Env,
        AccessRequest::Setting(_) => Capability::Config,
        AccessRequest::KeyValue => Capability::Keyvalue,
        AccessRequest::Tool(_) => Capability::Tools,
        AccessRequest::ContextKey(_) => Capability::Context,
        AccessRequest::Blackboard(_) => Capability::Blackboard,
    };
    if !effective.declared.has(capability) {
        return Decision::Denied(Denial::NotDeclared(capability));
    }
    if let Some(why) = effective.no_grant {
        return Decision::Denied(Denial::NoGrantReason(why));
    }
    match access {
        AccessRequest::Http(target) => request(&effective.http, target),
        AccessRequest::File(path, wanted) => file(effective, path, *wanted),
        AccessRequest::Variable(name) => {
            let exposed = effective.secrets.iter().filter_map(|rule| rule.exposed_as.as_deref());
            let names = effective.env.iter().map(|rule| rule.name.as_str()).chain(exposed);
            listed(names, name, capability, "the variable")
        }
        AccessRequest::Setting(name) => listed(
            effective.config.keys().map(String::as_str),
            name,
            capability,
            "the setting",
        ),
        AccessRequest::KeyValue => match &effective.keyvalue {
            Some(_) => Decision::Allowed { rule: 1 },
            None => Decision::Denied(Denial::NothingOfItsKind(capability)),
        },
        AccessRequest::Tool(id) => listed(effective.tools.iter().map(String::as_str), id, capability, "the tool"),
        AccessRequest::ContextKey(key) => {
            listed(effective.context.iter().map(String::as_str), key, capability, "the key")
        }
        AccessRequest::Blackboard(wanted) => match effective.blackboard {
            Some(AccessMode::Read) if *wanted == AccessMode::ReadWrite => Decision::Denied(Denial::NearestRule {
                rule: 1,
                allows: "reading".to_owned(),
            }),
            Some(_) => Decision::Allowed { rule: 1 },
            None => Decision::Denied(Denial::NothingOfItsKind(capability)),
        },
    }
}

/// Decides whether an allowed request may go to the address that its host has.
///
/// # Errors
/// The denial, with what the address belongs to.
pub fn decide_address(rule: &HttpRule, address: IpAddr) -> Result<(), Denial> {
    if rule.allows_address(address) {
        return Ok(());
    }
    Err(Denial::Address {
        address,
        class: AddressClass::of(address),
    })
}

fn request(rules: &[HttpRule], target: &RequestTarget) -> Decision {
    let mut nearest: Option<(u8, usize, String)> = None;
    for (index, rule) in rules.iter().enumerate() {
        let (closeness, allows) = match rule.mismatch(target) {
            None => return Decision::Allowed { rule: index + 1 },
            Some(RequestMismatch::Host) => (0, format!("the host {}", rule.host)),
            Some(RequestMismatch::Scheme) => (1, format!("the scheme {}", rule.scheme)),
            Some(RequestMismatch::Port) => (2, ports(&rule.ports)),
            Some(RequestMismatch::Method) => (3, format!("{} requests", rule.methods.join(" and "))),
            Some(RequestMismatch::Path) => (4, format!("paths below {}", rule.path)),
        };
        if nearest.as_ref().is_none_or(|(best, ..)| closeness > *best) {
            nearest = Some((closeness, index + 1, allows));
        }
    }
    Decision::Denied(match nearest {
        Some((_, rule, allows)) => Denial::NearestRule { rule, allows },
        None => Denial::NothingOfItsKind(Capability::Http),
    })
}

fn ports(ports: &[u16]) -> String {
    let named: Vec<_> = ports.iter().map(u16::to_string).collect();
    match named.as_slice() {
        [port] => format!("port {port}"),
        ports => format!("the ports {}", ports.join(", ")),
    }
}

fn file(effective: &EffectiveRights, path: &str, wanted: AccessMode) -> Decision {
    let path = Path::new(path);
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir | Component::Prefix(_)));
    // Where directories lie in one another, the innermost is the one that is used.
    let found = effective
        .files
        .iter()
        .enumerate()
        .filter(|(_, rule)| !climbs && rule.holds(path))
        .max_by_key(|(_, rule)| rule.guest.len());
    match (found, effective.files.first()) {
        (Some((index, rule)), _) if wanted == AccessMode::Read || rule.access == AccessMode::ReadWrite => {
            Decision::Allowed { rule: index + 1 }
        }
        (Some((index, _)), _) => Decision::Denied(Denial::NearestRule {
            rule: index + 1,
            allows: "reading".to_owned(),
        }),
        (None, Some(first)) => Decision::Denied(Denial::NearestRule {
            rule: 1,
            allows: format!("paths below {}", first.guest),
        }),
        (None, None) => Decision::Denied(Denial::NothingOfItsKind(Capability::Files)),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>, wanted: &str, capability: Capability, what: &str) -> Decision {
    let mut first = None;
    for (index, name) in names.enumerate() {
        if name == wanted {
            return Decision::Allowed { rule: index + 1 };
        }
        first.get_or_insert(name);
    }
    Decision::Denied(match first {
        Some(name) => Denial::NearestRule {
            rule: 1,
            allows: format!("{what} {name}"),
        },
        None => Denial::NothingOfItsKind(capability),
    })
}
