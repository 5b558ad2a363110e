//! Grants that do not reach their plugin, and keys that a plugin needs and has not.

use std::collections::BTreeSet;

use super::finding::Findings;
use crate::commands::grant::is_met;
use crate::exit::Exit;
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
    strangers(registry, &grants, findings);
    let count = counted(grants.grants.len(), "grant");
    findings.ok("grants", format!("{count} can be read"));
}

/// The names in the store of secrets.
fn secrets(authority: &AuthorityFlags, findings: &mut Findings) -> BTreeSet<String> {
    let names = authority.secrets.path().map(|path| SecretStore::new(path).names());
    match names {
        Ok(Ok(names)) => names.into_iter().collect(),
        Ok(Err(error)) => {
            let hint = Some("close it with `chmod 600`, or name another one with `--secrets FILE`".to_owned());
            findings.problem("secrets", "secrets", error.to_string(), hint, Exit::Usage);
            BTreeSet::new()
        }
        Err(_no_home) => BTreeSet::new(),
    }
}

/// Grants of another version do nothing for this one.
fn stale(plugin: &Plugin, grants: &Grants, findings: &mut Findings) {
    let digest = &plugin.inspection().digest;
    let has_some = grants.grants.iter().any(|grant| grant.is_for(plugin.name(), digest));
    if has_some || stale_grants(grants, plugin.name(), digest).is_empty() {
        return;
    }
    let name = plugin.name();
    let message = format!("what is granted to {name} is for another version of it, so that it has nothing");
    findings.warning(
        "grants",
        name,
        message,
        format!("`toolwit grant {name}` shows what that one had"),
    );
}

fn granted_secrets(plugin: &Plugin, effective: &EffectiveRights, stored: &BTreeSet<String>, findings: &mut Findings) {
    let missing = effective.secrets.iter().filter(|rule| match rule.source {
        SecretSource::Store => !stored.contains(&rule.name),
        SecretSource::Environment => variable(&rule.name).is_none(),
        // The conversation brings it.
        _ => false,
    });
    for rule in missing {
        let message = format!(
            "{} may use the secret `{}`, which is not there",
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
    let (plugin, name) = (plugin.name(), &need.name);
    let what = match need.description.trim() {
        "" => String::new(),
        told => format!(" ({told})"),
    };
    let message = format!("{plugin} needs `{name}`{what}, which nothing gives it");
    let hint =
        format!("`toolwit grant {plugin} --env {name}=VALUE`, or keep it as a secret: `toolwit secret set {name}`");
    findings.problem("needs", plugin, message, Some(hint), Exit::Usage);
}

/// A name that was mistyped grants nothing.
fn strangers(registry: &Registry, grants: &Grants, findings: &mut Findings) {
    let named: BTreeSet<&str> = grants.grants.iter().map(|grant| grant.plugin.as_str()).collect();
    for name in named.into_iter().filter(|name| registry.package(name).is_none()) {
        let message = format!("something is granted to {name}, which is not there");
        findings.warning(
            "grants",
            name,
            message,
            format!("`toolwit revoke {name}` takes it back"),
        );
    }
}
