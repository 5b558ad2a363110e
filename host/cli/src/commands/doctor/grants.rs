//! Grants that apply to no plugin, and values that a plugin requires but does not have.

use std::collections::BTreeSet;

use super::finding::Findings;
use crate::commands::grant::is_met;
use crate::exit::Exit;
use crate::hint::missing_value;
use crate::input::environment::variable;
use crate::input::plugins::AuthorityFlags;
use crate::output::page::counted;
use toolwit::grants::{EffectiveRights, Grants, SecretSource, stale_grants};
use toolwit::registry::{EnvironmentNeed, Registry};
use toolwit::sandbox::{Plugin, SecretStore};

pub(super) fn check(registry: &Registry, authority: &AuthorityFlags, findings: &mut Findings) {
    let grants = match authority.grants.read() {
        Ok(grants) => grants,
        Err(error) => {
            findings.error("grants", &error);
            return;
        }
    };
    let secrets = secrets(authority, findings);
    for package in registry.packages() {
        let Some(plugin) = package.plugin() else { continue };
        let digest = &plugin.inspection().digest;
        let effective = EffectiveRights::new(plugin.declared(), &grants, plugin.name(), digest);
        stale(plugin, &grants, findings);
        granted_secrets(plugin, &effective, &secrets, findings);
        let needs = package.manifest.iter().flat_map(|manifest| &manifest.environment);
        for need in needs.filter(|need| need.required) {
            if !is_met(need, &effective) {
                lacks(plugin, need, findings);
            }
        }
    }
    unknown_plugins(registry, &grants, findings);
    let count = counted(grants.grants.len(), "grant");
    findings.ok("grants", format!("{count} can be read"));
}

/// Lists the names of the secret store.
fn secrets(authority: &AuthorityFlags, findings: &mut Findings) -> BTreeSet<String> {
    let names = authority.secrets.path().map(|path| SecretStore::new(path).names());
    match names {
        Ok(Ok(names)) => names.into_iter().collect(),
        Ok(Err(error)) => {
            let hint = Some("run `chmod 600` on the file, or name another one with `--secrets FILE`".to_owned());
            findings.problem("secrets", "secrets", error.to_string(), hint, Exit::Usage);
            BTreeSet::new()
        }
        Err(_no_home) => BTreeSet::new(),
    }
}

/// Warns about grants for another version only.
fn stale(plugin: &Plugin, grants: &Grants, findings: &mut Findings) {
    let digest = &plugin.inspection().digest;
    let has_some = grants.grants.iter().any(|grant| grant.is_for(plugin.name(), digest));
    if has_some || stale_grants(grants, plugin.name(), digest).is_empty() {
        return;
    }
    let name = plugin.name();
    let message = format!("the grants of {name} are for another version of it, so that none applies");
    findings.warning(
        "grants",
        name,
        message,
        format!("`toolwit grant {name}` shows the grants of that version"),
    );
}

fn granted_secrets(plugin: &Plugin, effective: &EffectiveRights, stored: &BTreeSet<String>, findings: &mut Findings) {
    let missing = effective.rules.secrets.iter().filter(|rule| match rule.source {
        SecretSource::Store => !stored.contains(&rule.name),
        SecretSource::Environment => variable(&rule.name).is_none(),
        // The conversation provides it.
        SecretSource::Conversation => false,
    });
    for rule in missing {
        let message = format!(
            "{} has a grant for the secret `{}`, which does not exist",
            plugin.name(),
            rule.name
        );
        let hint = match rule.source {
            SecretSource::Environment => format!("set {} in the environment of the host", rule.name),
            _ => format!("`toolwit secret set {}` reads it from standard input", rule.name),
        };
        findings.problem("secrets", plugin.name(), message, Some(hint), Exit::Usage);
    }
}

fn lacks(plugin: &Plugin, need: &EnvironmentNeed, findings: &mut Findings) {
    let name = &need.name;
    let hint = missing_value(plugin.name(), plugin.declared(), name);
    let plugin = plugin.name();
    let what = match need.description.trim() {
        "" => String::new(),
        description => format!(" ({description})"),
    };
    let message = format!("{plugin} needs `{name}`{what}, which is not granted");
    findings.problem("needs", plugin, message, Some(hint), Exit::Usage);
}

/// Warns about grants for plugins that do not exist: a mistyped name grants nothing.
fn unknown_plugins(registry: &Registry, grants: &Grants, findings: &mut Findings) {
    let named: BTreeSet<&str> = grants.grants.iter().map(|grant| grant.plugin.as_str()).collect();
    for name in named.into_iter().filter(|name| registry.package(name).is_none()) {
        let message = format!("a grant names the plugin {name}, which does not exist");
        findings.warning("grants", name, message, format!("`toolwit revoke {name}` removes it"));
    }
}
