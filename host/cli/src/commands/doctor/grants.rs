//! Checks of grants and secrets: rules without effect, grants that apply to no plugin, and values that a plugin
//! requires but does not have.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::finding::Findings;
use crate::commands::grant::is_met;
use crate::exit::Exit;
use crate::hint::{missing_secret_hint, missing_value_hint};
use crate::input::host_files;
use crate::input::plugins::GrantAndSecretFlags;
use crate::output::page::counted;
use crate::shell::{SuggestedCommand, shell_word};
use toolwit::Error;
use toolwit::grants::{EffectiveRights, Grants, stale_grants};
use toolwit::registry::{EnvironmentNeed, Registry};
use toolwit::sandbox::{Plugin, SecretStore};

pub(super) async fn check(
    registry: &Registry,
    grants: &Grants,
    grants_and_secrets: &GrantAndSecretFlags,
    directories: &[PathBuf],
    findings: &mut Findings,
) {
    let can_read_secrets = check_secrets(grants_and_secrets, findings);
    for package in registry.packages() {
        let Some(plugin) = package.plugin() else { continue };
        let digest = &plugin.inspection().digest;
        let granted_rights = EffectiveRights::new(plugin.declared_capabilities(), grants, plugin.name(), digest);
        warn_about_stale_grants(plugin, grants, findings);
        match plugin.rights().await {
            Ok(rights) => report_ineffective_rules(plugin, &rights, findings),
            Err(error) if can_read_secrets => findings.add_error("secrets", &error),
            Err(_) => {}
        }
        let needs = package.manifest.iter().flat_map(|manifest| &manifest.environment);
        for need in needs.filter(|need| need.required) {
            if !is_met(need, &granted_rights) {
                report_missing_value(plugin, need, findings);
            }
        }
    }
    warn_about_unknown_plugins(registry, grants, directories, findings);
    check_records(grants_and_secrets, findings);
    let count = counted(grants.grants.len(), "grant");
    findings.add_ok("grants", format!("{count} can be read"));
}

/// Checks the secret store, if there is one. If the store cannot be read, reports a problem and returns `false`.
fn check_secrets(grants_and_secrets: &GrantAndSecretFlags, findings: &mut Findings) -> bool {
    let Ok(path) = grants_and_secrets.secrets.path() else {
        return true;
    };
    let Err(error) = SecretStore::new(&path).names() else {
        return true;
    };
    let repair = if is_open_to_others(&path) {
        format!("run `chmod 600 {}`", shell_word(&path.to_string_lossy()))
    } else {
        "fix the file".to_owned()
    };
    let hint = Some(format!("{repair}, or name another file with `--secrets FILE`"));
    findings.add_problem(
        "secrets",
        "secrets",
        error.to_string(),
        hint,
        Exit::UsageOrConfiguration,
    );
    false
}

/// Checks the records of grants: those next to the grants file, and the user's record of writable directories.
fn check_records(grants_and_secrets: &GrantAndSecretFlags, findings: &mut Findings) {
    let file = grants_and_secrets.grants.file();
    let checked = file.and_then(|file| file.check_records().map_err(Error::from));
    for error in [checked, host_files::check_writable_record()]
        .into_iter()
        .filter_map(Result::err)
    {
        let hint = error.suggestion.clone();
        let hint =
            hint.unwrap_or_else(|| "grants that depend on the record allow nothing; repair or delete it".to_owned());
        findings.add_problem(
            "grants",
            "grants",
            error.message.clone(),
            Some(hint),
            Exit::UsageOrConfiguration,
        );
    }
}

/// Returns whether users other than the owner can access a file.
#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> bool {
    false
}

/// Reports granted rules without effect as problems: rules that cannot be enforced, and secrets that do not exist. No call
/// of a plugin runs if one of its granted secrets is missing. Warns about granted variables without a value.
fn report_ineffective_rules(plugin: &Plugin, rights: &EffectiveRights, findings: &mut Findings) {
    let name = plugin.name();
    for rule in rights.unenforceable_directories.values() {
        let message = format!("a rule of {name} allows nothing: {rule}");
        let show = SuggestedCommand::new("grant").operand(name);
        let revoke = SuggestedCommand::new("revoke").operand(name).operand("RULE");
        let hint = format!("`{show}` shows its rules, `{revoke}` removes one");
        findings.add_problem("grants", name, message, Some(hint), Exit::UsageOrConfiguration);
    }
    for rule in &rights.missing.secrets {
        let message = format!(
            "{name} has a grant for the secret `{}`, which does not exist",
            rule.name
        );
        findings.add_problem(
            "secrets",
            name,
            message,
            missing_secret_hint(&rule.name, rule.source),
            Exit::UsageOrConfiguration,
        );
    }
    for variable in &rights.missing.variables {
        let message = format!("{name} has a grant for the environment variable `{variable}`, which is not set");
        findings.add_warning(
            "grants",
            name,
            message,
            format!("set {variable} in the environment of the host"),
        );
    }
}

/// Warns if all grants of a plugin are for other versions of the plugin.
fn warn_about_stale_grants(plugin: &Plugin, grants: &Grants, findings: &mut Findings) {
    let digest = &plugin.inspection().digest;
    let has_current_grants = grants.grants.iter().any(|grant| grant.is_for(plugin.name(), digest));
    if has_current_grants || stale_grants(grants, plugin.name(), digest).is_empty() {
        return;
    }
    let name = plugin.name();
    let message = format!("the grants of {name} are for another version of it, so that none applies");
    findings.add_warning(
        "grants",
        name,
        message,
        format!(
            "`{}` shows the grants of that version",
            SuggestedCommand::new("grant").operand(name)
        ),
    );
}

fn report_missing_value(plugin: &Plugin, need: &EnvironmentNeed, findings: &mut Findings) {
    let name = &need.name;
    let hint = missing_value_hint(plugin.name(), plugin.declared_capabilities(), name);
    let plugin = plugin.name();
    let description_suffix = match need.description.trim() {
        "" => String::new(),
        description => format!(" ({description})"),
    };
    let message = format!("{plugin} needs `{name}`{description_suffix}, which is missing");
    findings.add_problem("needs", plugin, message, Some(hint), Exit::UsageOrConfiguration);
}

/// Warns about grants for plugins that do not exist, for example because the name was mistyped.
/// Grants that were made for other plugin directories are left out: revoking them would take them from these.
fn warn_about_unknown_plugins(registry: &Registry, grants: &Grants, directories: &[PathBuf], findings: &mut Findings) {
    let concerned = grants.grants.iter().filter(|grant| grant.concerns(directories));
    let plugin_names: BTreeSet<&str> = concerned.map(|grant| grant.plugin.as_str()).collect();
    for name in plugin_names.into_iter().filter(|name| registry.package(name).is_none()) {
        let message = format!("a grant names the plugin {name}, which does not exist");
        let revoke = SuggestedCommand::new("revoke").operand(name);
        findings.add_warning("grants", name, message, format!("`{revoke}` removes it"));
    }
}
