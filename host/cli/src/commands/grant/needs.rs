//! What a manifest says that its plugin needs, and whether it has it.

use crate::input::environment::variable;
use toolwit::grants::EffectiveRights;
use toolwit::registry::EnvironmentNeed;

/// Whether a call would find what it needs, as far as that is known without a conversation.
pub(crate) fn is_met(need: &EnvironmentNeed, effective: &EffectiveRights) -> bool {
    let is_given = effective
        .env
        .iter()
        .any(|rule| rule.name == need.name && (rule.value.is_some() || variable(&rule.name).is_some()));
    let is_secret = effective
        .secrets
        .iter()
        .any(|rule| rule.name == need.name || rule.exposed_as.as_ref() == Some(&need.name));
    is_given || is_secret || effective.config.contains_key(&need.name)
}
