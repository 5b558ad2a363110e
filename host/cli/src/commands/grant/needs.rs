//! The values that a manifest requires, compared with the grants.

use crate::input::environment::variable;
use toolwit::grants::EffectiveRights;
use toolwit::registry::EnvironmentNeed;

/// Returns whether a value that a manifest needs is granted: as an environment variable, a secret or a setting. A
/// variable that is granted without a value counts only if it is set in the environment of the host. Values that a
/// conversation provides are not considered.
pub(crate) fn is_met(need: &EnvironmentNeed, effective: &EffectiveRights) -> bool {
    let is_variable = effective
        .rules
        .env
        .iter()
        .any(|rule| rule.name == need.name && (rule.value.is_some() || variable(&rule.name).is_some()));
    let is_secret = effective
        .rules
        .secrets
        .iter()
        .any(|rule| rule.name == need.name || rule.exposed_as.as_ref() == Some(&need.name));
    is_variable || is_secret || effective.rules.config.contains_key(&need.name)
}
