//! The decision on one access.

use std::net::IpAddr;
use std::path::{Component, Path};

use super::access::{AccessRequest, Decision, Denial};
use super::address::AddressClass;
use super::directory_rule::AccessMode;
use super::effective::EffectiveRights;
use super::grant::GrantRules;
use super::http_rule::{HttpRule, RequestMismatch};
use super::request_target::RequestTarget;
use crate::inspect::declared_capabilities::Capability;

/// The number of the rule for an access of which only one rule can exist, such as the access to the key–value store.
const ONLY_RULE: usize = 1;

/// Decides whether an access is allowed, and by which rule. Has no side effects. Every access check of the host calls this
/// function, and so does `explain`.
///
/// `rights` must contain only grants that currently apply, without those that are used up. After an HTTP request is allowed,
/// [`decide_address`] decides whether it may connect to the address of its host.
#[must_use]
pub fn decide(rights: &EffectiveRights, request: &AccessRequest<'_>) -> Decision {
    match rule_for(rights, request) {
        Ok(rule) => Decision::Allowed { rule },
        Err(denial) => Decision::Denied(denial),
    }
}

/// Decides whether an allowed request may connect to an address of its host.
///
/// # Errors
/// [`Denial::Address`] if the address is not public and the rule does not include it.
pub fn decide_address(rule: &HttpRule, address: IpAddr) -> Result<(), Denial> {
    if rule.allows_address(address) {
        return Ok(());
    }
    Err(Denial::Address {
        address,
        class: AddressClass::of(address),
    })
}

/// Returns the number of the rule that allows an access, counted from 1, or `None` if the access needs no grant.
fn rule_for(rights: &EffectiveRights, request: &AccessRequest<'_>) -> Result<Option<usize>, Denial> {
    let capabilities = request.capabilities();
    let Some(capability) = capabilities
        .iter()
        .copied()
        .find(|capability| rights.declared.has(*capability))
    else {
        return Err(Denial::NotDeclared(capabilities[0]));
    };
    // A plugin cannot be called while a secret that is granted to it is missing, so no access is allowed.
    if let Some(secret) = rights.missing.secrets.first() {
        return Err(Denial::MissingSecret {
            name: secret.name.clone(),
            source: secret.source,
        });
    }
    let rules = &rights.rules;
    // Clocks and randomness need no grant. A rule for them can only replace the real values by frozen ones.
    match request {
        AccessRequest::Clock => return Ok(rules.clock.map(|_| ONLY_RULE)),
        AccessRequest::Random => return Ok(rules.random.map(|_| ONLY_RULE)),
        _ => {}
    }
    if let Some(reason) = rights.no_grant {
        return Err(Denial::NoGrant(reason));
    }
    let only_rule = |is_granted: bool| {
        if is_granted {
            Ok(ONLY_RULE)
        } else {
            Err(Denial::NoRule(capability))
        }
    };
    match request {
        AccessRequest::Http(target) => http_rule_for(&rules.http, target),
        AccessRequest::File(path, mode) => file_rule_for(rights, path, *mode),
        AccessRequest::Secret(name) => {
            let names = rules.secrets.iter().map(|rule| rule.name.as_str());
            find_name(names, name, capability, "the secret")
        }
        AccessRequest::Variable(name) => variable_rule_for(rights, name),
        AccessRequest::Setting(key) => {
            find_name(rules.config.keys().map(String::as_str), key, capability, "the setting")
        }
        AccessRequest::KeyValue => only_rule(rules.keyvalue.is_some()),
        AccessRequest::Tool(id) => find_name(rules.tools.iter().map(String::as_str), id, capability, "the tool"),
        AccessRequest::ContextKey(key) => {
            find_name(rules.context.iter().map(String::as_str), key, capability, "the key")
        }
        AccessRequest::Blackboard(mode) => match rules.blackboard {
            Some(AccessMode::Read) if *mode == AccessMode::ReadWrite => Err(denial_of_writing(0)),
            granted => only_rule(granted.is_some()),
        },
        AccessRequest::Ask => only_rule(rules.ask),
        // Unreachable: the `match` above has already returned.
        AccessRequest::Clock | AccessRequest::Random => Ok(ONLY_RULE),
    }
    .map(Some)
}

fn http_rule_for(rules: &[HttpRule], target: &RequestTarget) -> Result<usize, Denial> {
    let mut nearest: Option<(u8, usize, String)> = None;
    for (index, rule) in rules.iter().enumerate() {
        let (closeness, allows) = match rule.mismatch(target) {
            None => return Ok(index + 1),
            Some(RequestMismatch::Host) => (0, format!("the host {}", rule.host)),
            Some(RequestMismatch::Scheme) => (1, format!("the scheme {}", rule.scheme)),
            Some(RequestMismatch::Port) => (2, describe_ports(&rule.ports)),
            Some(RequestMismatch::Method) => (3, format!("{} requests", rule.methods.join(" and "))),
            Some(RequestMismatch::Path) => (4, format!("paths below {}", rule.path)),
        };
        if nearest.as_ref().is_none_or(|(best, ..)| closeness > *best) {
            nearest = Some((closeness, index + 1, allows));
        }
    }
    Err(match nearest {
        Some((_, rule, allows)) => Denial::NearestRule { rule, allows },
        None => Denial::NoRule(Capability::Http),
    })
}

fn describe_ports(ports: &[u16]) -> String {
    let numbers: Vec<_> = ports.iter().map(u16::to_string).collect();
    match numbers.as_slice() {
        [port] => format!("port {port}"),
        ports => format!("the ports {}", ports.join(", ")),
    }
}

fn file_rule_for(rights: &EffectiveRights, path: &str, mode: AccessMode) -> Result<usize, Denial> {
    let rules = &rights.rules.files;
    let Some(first) = rules.first() else {
        return Err(Denial::NoRule(Capability::Files));
    };
    let path = Path::new(path);
    let is_not_plain = |component| matches!(component, Component::ParentDir | Component::Prefix(_));
    if !path.has_root() || path.components().any(is_not_plain) {
        return Err(Denial::PathNotPlain);
    }
    // Of nested directories, the innermost one that can be opened decides.
    let contains_path = |index: &usize| rules[*index].contains(path);
    let innermost_of = |indices: &mut dyn Iterator<Item = usize>| indices.max_by_key(|index| rules[*index].guest.len());
    let is_enforceable = |index: &usize| rights.unenforceable_directory(*index).is_none();
    let containing_rules = || (0..rules.len()).filter(contains_path);
    let Some(innermost) = innermost_of(&mut containing_rules().filter(is_enforceable)) else {
        let unenforceable =
            innermost_of(&mut containing_rules()).and_then(|index| rights.unenforceable_directory(index));
        return Err(match unenforceable {
            Some(rule) => Denial::Unenforceable(rule.clone()),
            None => Denial::NearestRule {
                rule: 1,
                allows: format!("paths below {}", first.guest),
            },
        });
    };
    let serving_index = serving_rule(rights, innermost);
    if mode == AccessMode::Read || rules[serving_index].access == AccessMode::ReadWrite {
        Ok(serving_index + 1)
    } else {
        Err(denial_of_writing(serving_index))
    }
}

/// Finds the rule of the directory through which a guest reaches the files of the rule `inner`. This is usually `inner`
/// itself. `inner` and the result are indices in `rules.files`.
///
/// The result is an outer rule if three conditions hold: the directory of `inner` is read-only, the outer directory is writable,
/// and the relative path between the two is the same on the host and for the guest. Then the guest can also write to the files of
/// `inner` through the outer directory, so `inner` cannot protect them.
fn serving_rule(rights: &EffectiveRights, inner: usize) -> usize {
    let rules = &rights.rules.files;
    let rule = &rules[inner];
    let contains_inner = |outer: &usize| {
        let outer = &rules[*outer];
        outer.guest.len() < rule.guest.len() && outer.contains(Path::new(&rule.guest))
    };
    let outer = (0..rules.len())
        .filter(contains_inner)
        .filter(|outer| rights.unenforceable_directory(*outer).is_none())
        .max_by_key(|outer| rules[*outer].guest.len());
    let Some(outer) = outer.map(|outer| serving_rule(rights, outer)) else {
        return inner;
    };
    let has_same_relative_path = || {
        let relative_path = Path::new(&rule.guest).strip_prefix(&rules[outer].guest).ok()?;
        Some(rights.host_directory(outer)?.join(relative_path) == rights.host_directory(inner)?)
    };
    let is_served_by_outer = rule.access == AccessMode::Read
        && rules[outer].access == AccessMode::ReadWrite
        && has_same_relative_path() == Some(true);
    if is_served_by_outer { outer } else { inner }
}

/// Returns the denial of a write access by a rule that allows reading. `index` counts from 0.
fn denial_of_writing(index: usize) -> Denial {
    Denial::NearestRule {
        rule: index + 1,
        allows: "reading".to_owned(),
    }
}

/// Finds the number of the rule that allows a variable. Rules of exposed secrets are counted after the rules of variables.
fn variable_rule_for(rights: &EffectiveRights, name: &str) -> Result<usize, Denial> {
    let GrantRules { env, secrets, .. } = &rights.rules;
    let exposed_names = secrets.iter().filter_map(|rule| rule.exposed_as.as_deref());
    let names = env.iter().map(|rule| rule.name.as_str()).chain(exposed_names);
    let rule = find_name(names, name, Capability::Env, "the variable")?;
    if rights.missing.variables.iter().any(|missing| missing == name) {
        return Err(Denial::MissingVariable(name.to_owned()));
    }
    Ok(rule)
}

/// Finds the number of the wanted name in a list of granted names, counted from 1. If the name is not in the list, the denial
/// describes the first granted name with `noun`, such as `the setting`.
fn find_name<'a>(
    granted_names: impl Iterator<Item = &'a str>,
    wanted: &str,
    capability: Capability,
    noun: &str,
) -> Result<usize, Denial> {
    let mut first = None;
    for (index, name) in granted_names.enumerate() {
        if name == wanted {
            return Ok(index + 1);
        }
        first.get_or_insert(name);
    }
    Err(match first {
        Some(name) => Denial::NearestRule {
            rule: 1,
            allows: format!("{noun} {name}"),
        },
        None => Denial::NoRule(capability),
    })
}
