//! The one answer to "may it?", for the gates and for `toolwit explain`.

use std::fmt;
use std::net::IpAddr;
use std::path::{Component, Path};

use super::address::AddressClass;
use super::declared::Capability;
use super::effective::{Effective, Ungranted};
use super::fs_rule::FileAccess;
use super::host_rule::{HostRule, Mismatch};
use super::target::RequestTarget;

/// What a plugin wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access<'a> {
    /// Make this request.
    Request(&'a RequestTarget),
    /// Read or write this guest path.
    File(&'a str, FileAccess),
    /// Read this environment variable.
    Env(&'a str),
    /// Read this setting.
    Config(&'a str),
    /// Use its key–value store.
    Keyvalue,
    /// Call this tool.
    Tool(&'a str),
    /// Read this key of the call's context.
    Context(&'a str),
    /// Read or write what the tools of a conversation share.
    Blackboard(FileAccess),
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
    Ungranted(Ungranted),
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
            Self::Ungranted(Ungranted::NoGrant) => f.write_str("nothing is granted to it"),
            Self::Ungranted(Ungranted::OtherDigest) => f.write_str("it was granted to another version of the plugin"),
            Self::Ungranted(Ungranted::UsedUp) => f.write_str("the grant was used up"),
            Self::Ungranted(Ungranted::Unreadable) => {
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
pub fn decide(effective: &Effective, access: &Access<'_>) -> Decision {
    let capability = match access {
        Access::Request(_) => Capability::Http,
        Access::File(..) => Capability::Files,
        Access::Env(_) => Capability::Env,
        Access::Config(_) => Capability::Config,
        Access::Keyvalue => Capability::Keyvalue,
        Access::Tool(_) => Capability::Tools,
        Access::Context(_) => Capability::Context,
        Access::Blackboard(_) => Capability::Blackboard,
    };
    if !effective.declared.has(capability) {
        return Decision::Denied(Denial::NotDeclared(capability));
    }
    if let Some(why) = effective.ungranted {
        return Decision::Denied(Denial::Ungranted(why));
    }
    match access {
        Access::Request(target) => request(&effective.http, target),
        Access::File(path, wanted) => file(effective, path, *wanted),
        Access::Env(name) => {
            let exposed = effective.secrets.iter().filter_map(|rule| rule.exposed_as.as_deref());
            let names = effective.env.iter().map(|rule| rule.name.as_str()).chain(exposed);
            listed(names, name, capability, "the variable")
        }
        Access::Config(name) => listed(
            effective.config.keys().map(String::as_str),
            name,
            capability,
            "the setting",
        ),
        Access::Keyvalue => match &effective.keyvalue {
            Some(_) => Decision::Allowed { rule: 1 },
            None => Decision::Denied(Denial::NothingOfItsKind(capability)),
        },
        Access::Tool(id) => listed(effective.tools.iter().map(String::as_str), id, capability, "the tool"),
        Access::Context(key) => listed(effective.context.iter().map(String::as_str), key, capability, "the key"),
        Access::Blackboard(wanted) => match effective.blackboard {
            Some(FileAccess::Read) if *wanted == FileAccess::ReadWrite => Decision::Denied(Denial::NearestRule {
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
pub fn decide_address(rule: &HostRule, address: IpAddr) -> Result<(), Denial> {
    if rule.allows_address(address) {
        return Ok(());
    }
    Err(Denial::Address {
        address,
        class: AddressClass::of(address),
    })
}

fn request(rules: &[HostRule], target: &RequestTarget) -> Decision {
    let mut nearest: Option<(u8, usize, String)> = None;
    for (index, rule) in rules.iter().enumerate() {
        let (closeness, allows) = match rule.mismatch(target) {
            None => return Decision::Allowed { rule: index + 1 },
            Some(Mismatch::Host) => (0, format!("the host {}", rule.host)),
            Some(Mismatch::Scheme) => (1, format!("the scheme {}", rule.scheme)),
            Some(Mismatch::Port) => (2, ports(&rule.ports)),
            Some(Mismatch::Method) => (3, format!("{} requests", rule.methods.join(" and "))),
            Some(Mismatch::Path) => (4, format!("paths below {}", rule.path)),
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

fn file(effective: &Effective, path: &str, wanted: FileAccess) -> Decision {
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
        (Some((index, rule)), _) if wanted == FileAccess::Read || rule.access == FileAccess::ReadWrite => {
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
