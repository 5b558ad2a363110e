//! The rules of grants, and the decision on one access. This module performs no I/O and runs no guest code.

mod access;
mod address;
mod decide;
mod directory_rule;
mod effective;
mod error;
mod grant;
mod http_rule;
mod plain_path;
mod request_target;
mod secret_rule;
// Without the feature `network`, a grants file with HTTP rules is invalid. Many of these tests use HTTP rules.
#[cfg(all(test, feature = "network"))]
mod tests;
mod value_rules;

pub use access::{AccessRequest, Decision, Denial, Explanation};
pub use address::{AddressClass, AddressRange, canonical};
pub use decide::{decide, decide_address};
pub use directory_rule::{AccessMode, DirectoryRule};
pub use effective::{EffectiveRights, MissingValues, NoGrantReason, UnenforceableRule};
pub use error::{FilePosition, GrantsError, RuleError};
pub use grant::{Grant, GrantRules, GrantScope, GrantedVersion, Grants, stale_grants};
pub use http_rule::{HostPattern, HttpRule, RequestMismatch};
pub use request_target::{RequestHost, RequestTarget, Scheme};
pub use secret_rule::{SecretPlacement, SecretRule, SecretSource, SecretTarget, check_name};
pub use value_rules::{ClockRule, EnvRule, KeyValueRule, RandomRule};
