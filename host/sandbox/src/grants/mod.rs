//! What a plugin may do: declared ∩ granted = effective. Pure: nothing here opens, resolves or runs anything.
//!
//! A component [declares](Declared) what it wants by its imports. An operator [grants](Grants) in a file that no plugin ships
//! and no model can reach. What both have is [effective](Effective), and [`decide`] answers for every gate, and for
//! `toolwit explain`, whether an access is allowed and by which rule.

mod address;
pub(crate) mod authority;
mod decide;
mod declared;
mod effective;
mod error;
mod fs_rule;
mod grants;
mod host_rule;
mod secret_rule;
mod target;
#[cfg(test)]
mod tests;

pub use address::{AddressClass, AddressRange, canonical};
pub use decide::{Access, Decision, Denial, decide, decide_address};
pub use declared::{Capability, Declared};
pub use effective::{Effective, Ungranted, stale_grants};
pub use error::{GrantsError, Place, RuleError};
pub use fs_rule::{FileAccess, FsRule};
pub use grants::{
    Allowance, ClockRule, EnvRule, GRANTS_BYTES_MAX, Grant, GrantScope, GrantedVersion, Grants, KeyValueRule,
    RandomRule,
};
pub use host_rule::{HostPattern, HostRule, Mismatch};
pub use secret_rule::{Placement, SecretOrigin, SecretRule, SecretTarget, check_name};
pub use target::{Host, RequestTarget, Scheme};
