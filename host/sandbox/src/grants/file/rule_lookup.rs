//! Lookup of a rule by its text.

use super::error::GrantsFileErrorReason;
use crate::grants::Grant;

/// Finds a rule of a plugin, and returns its text. Finds the rule whose text is `rule`. If there is none, finds the only rule
/// whose text starts with the words of `rule`.
///
/// # Errors
/// [`GrantsFileErrorReason::NotGranted`] if the plugin has no grant, and [`GrantsFileErrorReason::NotOneRule`] if no rule or
/// several rules start with these words.
pub(super) fn find_rule(grants: &[Grant], plugin: &str, rule: &str) -> Result<String, GrantsFileErrorReason> {
    let plugin_grants: Vec<_> = grants.iter().filter(|grant| grant.plugin == plugin).collect();
    if plugin_grants.is_empty() {
        return Err(GrantsFileErrorReason::NotGranted(plugin.to_owned()));
    }
    let mut rules: Vec<String> = plugin_grants.iter().flat_map(|grant| grant.rules.describe()).collect();
    rules.sort();
    rules.dedup();
    if let Some(equal_rule) = rules.iter().find(|text| *text == rule) {
        return Ok(equal_rule.clone());
    }
    let starts_with_words = |text: &&String| text.strip_prefix(rule).is_some_and(|end| end.starts_with([' ', ',']));
    let matching: Vec<_> = rules.iter().filter(starts_with_words).collect();
    match matching.as_slice() {
        [one] => Ok((*one).clone()),
        none_or_several => Err(GrantsFileErrorReason::NotOneRule {
            plugin: plugin.to_owned(),
            rule: rule.to_owned(),
            is_ambiguous: !none_or_several.is_empty(),
            rules,
        }),
    }
}
