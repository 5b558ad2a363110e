//! The rule in a configuration file for the context values that a server receives.

use serde::{Deserialize, Serialize};

use toolwit_core::MetaFilter;

/// The values of the caller's context that are sent to a server as `_meta`. By default, no values are sent.
///
/// In a file it is `"none"`, `"pass"`, `{ allow = ["tenant"] }` or `{ deny = ["email"] }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetaRule {
    /// No values.
    #[default]
    None,
    /// All values, for a trusted server.
    Pass,
    /// Only the values with these keys.
    Allow(Vec<String>),
    /// All values, except those with these keys.
    Deny(Vec<String>),
}

impl From<MetaRule> for MetaFilter {
    fn from(rule: MetaRule) -> Self {
        match rule {
            MetaRule::None => Self::nothing(),
            MetaRule::Pass => Self::pass_through(),
            MetaRule::Allow(keys) => Self::allow(keys),
            MetaRule::Deny(keys) => Self::deny(keys),
        }
    }
}
