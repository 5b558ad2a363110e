//! The access rights of a plugin: declared ∩ granted = effective.
//!
//! A component [declares](DeclaredCapabilities) capabilities by its imports. An operator [grants](Grants) rules in a
//! file that no plugin ships and no model can reach; an application can grant rules in its code. The intersection is
//! [`EffectiveRights`]. The access checks of the host and the `explain` command use [`decide`], which returns whether an
//! access is allowed, and by which rule. [`decide_address`] then decides to which addresses an allowed HTTP request may
//! connect.
//!
//! The modules: `rules` defines the rules and decides on accesses, without reading files. `directories` opens granted
//! directories and counts the bytes that are written to them. `file` reads and changes the grants file. `redact` replaces
//! secrets in text. `authority` gives one call its rights, directories and secrets.

pub(crate) mod authority;
pub(crate) mod directories;
pub(crate) mod file;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "only the network code masks secrets in streams")
)]
pub(crate) mod redact;
mod rules;

pub use crate::inspect::declared_capabilities::{Capability, DeclaredCapabilities};
pub use rules::{
    AccessMode, AccessRequest, AddressClass, AddressRange, ClockRule, Decision, Denial, DirectoryRule, EffectiveRights,
    EnvRule, Explanation, FilePosition, Grant, GrantRules, GrantScope, GrantedVersion, Grants, GrantsError,
    HostPattern, HttpRule, KeyValueRule, MissingValues, NoGrantReason, RandomRule, RequestHost, RequestMismatch,
    RequestTarget, RuleError, Scheme, SecretPlacement, SecretRule, SecretSource, SecretTarget, UnenforceableRule,
    canonical, check_name, decide, decide_address, stale_grants,
};
