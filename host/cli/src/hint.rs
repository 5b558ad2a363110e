//! Commands and options that fix an error of the library.
//!
//! The suggestions of the library name settings and APIs, because the library does not know the program that embeds it.
//! This module replaces suggestions of errors that several commands can cause by hints with commands and options.

use std::borrow::Cow;
use std::error::Error as _;

use crate::shell::SuggestedCommand;
use toolwit::find::FindError;
use toolwit::grants::{Capability, DeclaredCapabilities, SecretSource};
use toolwit::limits::{Limit, LimitSetting, all_limits};
use toolwit::mcp::LoginRequired;
use toolwit::registry::{AddError, Package, Registry};
use toolwit::sandbox::{SecretError, UnbuiltComponent, Wasi3Disabled};
use toolwit::store::StoreError;
use toolwit::tool::{DeniedAccess, MissingGrant};
use toolwit::{Error, ErrorKind};

/// The hint for a plugin directory without packages.
pub(crate) const NO_PACKAGES: &str =
    "the plugin directory has no `.wasm` file; `toolwit build DIR` builds one from source";

/// Returns the definition of the limit that an error reports as exceeded: its default, and the option that sets it. Returns
/// `None` if the error reports no limit, or a limit without a definition.
pub(crate) fn definition_of_exceeded_limit(error: &Error) -> Option<Limit> {
    let name = error.limit.as_ref()?.limit;
    // A limit of a run has another name in errors than in the table of limits, such as `calls_max` and `CALLS_MAX`. The
    // text of its setting in the table contains the name in errors: "`--calls`, `LoopLimits::calls_max`".
    let field = format!("LoopLimits::{name}`");
    let is_exceeded = |limit: &Limit| match limit.setting {
        LimitSetting::Named(setting) if error.kind == ErrorKind::LoopLimit => setting.contains(&field),
        _ => limit.name.eq_ignore_ascii_case(name),
    };
    all_limits().into_iter().find(is_exceeded)
}

/// Returns the error that explains why dynamic tools of a package are missing. Its hint is the command that discovers
/// them. `None` if no tools are missing.
pub(crate) fn discovery_error(package: &Package) -> Option<Error> {
    let error = package.discovery_error()?;
    let command = format!("`{}`", SuggestedCommand::new("refresh").operand(&package.name));
    let failure = package.discovery_failure();
    let hint = match failure.map(|failure| failure.suggestion.as_deref()) {
        Some(Some(first_step)) => format!("{first_step}; then {command} discovers them"),
        Some(None) => format!("{command} tries again"),
        None => format!("{command} discovers them now; a host discovers them when it starts"),
    };
    Some(error.override_suggestion(hint))
}

/// Converts the error for a tool that was not found, and adds a hint with the command or option that helps. If the
/// dynamic tools of the tool's plugin are not discovered, returns the [error of the discovery](discovery_error).
pub(crate) fn convert_find_error(error: FindError, registry: &Registry) -> Error {
    let suggestion = match &error {
        FindError::Unknown { .. } if registry.packages().is_empty() => Some(NO_PACKAGES.to_owned()),
        FindError::Unknown { nearest, .. } if nearest.is_empty() => Some("`toolwit list` lists the tools".to_owned()),
        FindError::NeedsEntity { entity, .. } => Some(format!(
            "call a tool that returns a `{entity}` first; `--script FILE` makes several calls in one conversation"
        )),
        FindError::Unavailable { plugin, .. } => match registry.package(plugin).and_then(discovery_error) {
            Some(error) => return error,
            None => None,
        },
        _ => None,
    };
    let error = Error::from(error);
    match (suggestion, error.kind, &error.suggestion) {
        (Some(suggestion), ErrorKind::UnknownTool, Some(original)) => {
            let suggestion = format!("{suggestion}. {original}");
            error.override_suggestion(suggestion)
        }
        (Some(suggestion), ..) => error.override_suggestion(suggestion),
        (None, ..) => error,
    }
}

/// Converts the error of `toolwit add`, and adds a hint with the option or command that fixes the error.
pub(crate) fn convert_add_error(error: AddError) -> Error {
    let suggestion = match &error {
        AddError::NoComponent(_) => Some("`toolwit build DIR` builds one from source".to_owned()),
        AddError::NameTaken { .. } => Some("replace it with `--replace`".to_owned()),
        AddError::NoIndex(_) => {
            Some("name an existing component file, or set a package index with `--index URL`".to_owned())
        }
        AddError::NotInIndex { .. } => Some("check the name, or use another index with `--index URL`".to_owned()),
        AddError::Unpinned { url, digest, .. } => Some(format!(
            "compare the digest with the one that its author publishes; then `{}`",
            SuggestedCommand::new("add").operand(&format!("{url}#sha256={digest}"))
        )),
        AddError::Failed(error) if error.kind == ErrorKind::Timeout => {
            Some("`--timeout TIME` allows more time".to_owned())
        }
        _ => None,
    };
    let error = Error::from(error);
    match suggestion {
        Some(suggestion) => error.override_suggestion(suggestion),
        None => error,
    }
}

/// Replaces the suggestion of an error by a hint with the command or option that fixes the error, if there is one.
pub(crate) fn with_fixing_hint(error: &Error) -> Cow<'_, Error> {
    match fixing_hint(error) {
        Some(hint) => Cow::Owned(error.clone().override_suggestion(hint)),
        None => Cow::Borrowed(error),
    }
}

/// Returns the hint that fixes an error: for the first denied access, or for a cause of one of the types below. `None`
/// for other errors.
fn fixing_hint(error: &Error) -> Option<String> {
    if error.kind == ErrorKind::Denied {
        return error.denied.first().map(denied_access_hint);
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(missing) = cause.downcast_ref::<MissingGrant>() {
            return Some(value_grant_hint(missing));
        }
        if let Some(required) = cause.downcast_ref::<LoginRequired>() {
            return Some(login_hint(required));
        }
        if let Some(unbuilt) = cause.downcast_ref::<UnbuiltComponent>() {
            return Some(match unbuilt {
                UnbuiltComponent::CoreModule => {
                    "build it with `toolwit build`, or wrap it with `wasm-tools component new`".to_owned()
                }
                _ => "build it with `toolwit build`".to_owned(),
            });
        }
        if cause.is::<Wasi3Disabled>() {
            return Some(
                "`--wasi-p3`, or `wasi_p3 = true` in `[sandbox]` of `toolwit.toml`, enables WASI 0.3".to_owned(),
            );
        }
        if let Some(SecretError::Missing { name, location }) = cause.downcast_ref::<SecretError>() {
            return missing_secret_hint(name, *location);
        }
        if let Some(store_error) = cause.downcast_ref::<StoreError>() {
            return Some(store_hint(store_error).to_owned());
        }
        source = cause.source();
    }
    None
}

/// Returns the command that logs in to a server.
fn login_hint(required: &LoginRequired) -> String {
    let command = SuggestedCommand::new("mcp login").operand(&required.server);
    let add_scope = |command: SuggestedCommand, scope: &String| command.option("scope", scope);
    let command = required.scopes.iter().fold(command, add_scope);
    format!("`{command}` logs in; or set `bearer` or `oauth` of the server")
}

fn store_hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Foreign => "pass another or a new file with `--store FILE`",
        StoreError::Newer { .. } => "use a newer version of toolwit, or pass another file with `--store FILE`",
        _ => "check the file and its directory, or pass another file with `--store FILE`",
    }
}

/// Returns the hint for a value that a plugin needs and does not have. Its commands grant the value as a setting or a
/// variable. If the plugin can send HTTP requests, further commands grant the value as a secret.
pub(crate) fn missing_value_hint(plugin: &str, declared: &DeclaredCapabilities, value: &str) -> String {
    let mut hint = format!("`{}`", value_command(plugin, declared.value_grant_key(), value));
    if declared.has(Capability::Http) {
        let store = SuggestedCommand::new("secret set").operand(value);
        let send = SuggestedCommand::new("grant").operand(plugin).option("secret", value);
        let send = send.option("to", "HOST").option("as", "bearer");
        hint.push_str(&format!("; if a host receives it: `{store}`, then `{send}`"));
    }
    hint
}

fn value_command(plugin: &str, key: &str, value: &str) -> SuggestedCommand {
    let command = SuggestedCommand::new("grant").operand(plugin);
    command.option(key, &format!("{value}=VALUE"))
}

/// Returns the hint for a call that was refused because a required value is not granted.
fn value_grant_hint(missing: &MissingGrant) -> String {
    let command = value_command(&missing.plugin, &missing.key, &missing.value);
    format!("ask the user for it, then run `{command}`; `toolwit doctor` checks it")
}

/// Returns the hint that provides a missing secret. `None` if there is no hint for the source of the secret.
pub(crate) fn missing_secret_hint(name: &str, source: SecretSource) -> Option<String> {
    match source {
        SecretSource::Store => {
            let command = SuggestedCommand::new("secret set").operand(name);
            Some(format!("`{command}` reads it from standard input"))
        }
        SecretSource::Environment => Some(format!("set {name} in the environment of the host")),
        _ => None,
    }
}

/// Returns the command that allows an access that the host denied, or another suggestion.
pub(crate) fn denied_access_hint(denied: &DeniedAccess) -> String {
    match &denied.missing_grant {
        Some(missing) => grant_command(missing).to_string(),
        None => denied.suggestion.clone(),
    }
}

/// Returns the command that adds a missing grant.
pub(crate) fn grant_command(missing: &MissingGrant) -> SuggestedCommand {
    let MissingGrant { plugin, key, value } = missing;
    let (option, value) = match (key.as_str(), value.split_once(' ')) {
        ("files", Some(("read", path))) => ("read", format!("DIR::{}", directory_of(path))),
        ("files", Some((_, path))) => ("write", format!("DIR::{}", directory_of(path))),
        ("config", _) => ("config", format!("{value}=VALUE")),
        ("tools", _) => ("tool", value.clone()),
        ("secret", Some((name, target))) => return secret_grant_command(plugin, name, target),
        ("ask", _) => return SuggestedCommand::new("grant").operand(plugin).flag("ask"),
        (key, _) => (key, value.clone()),
    };
    SuggestedCommand::new("grant").operand(plugin).option(option, &value)
}

/// Returns the directory to grant for a path that a plugin used. Only directories can be granted. Therefore, a last
/// segment with an extension is removed, because it probably names a file.
fn directory_of(guest_path: &str) -> &str {
    match guest_path.rsplit_once('/') {
        Some((directory, name)) if name.trim_start_matches('.').contains('.') => match directory {
            "" => "/",
            directory => directory,
        },
        _ => guest_path,
    }
}

/// Returns the command that grants a secret for HTTP requests. `target` is the host that receives the secret. After a
/// space, it can have the part of the request that carries the secret, by default `bearer`.
fn secret_grant_command(plugin: &str, name: &str, target: &str) -> SuggestedCommand {
    let (host, placement) = target.split_once(' ').unwrap_or((target, "bearer"));
    let command = SuggestedCommand::new("grant").operand(plugin).option("secret", name);
    command.option("to", host).option("as", placement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwit::Phase;
    use toolwit::tool::ExceededLimit;

    #[test]
    fn a_grant_is_suggested_for_the_directory_of_a_file() {
        for (path, directory) in [
            ("/notes/todo.md", "/notes"),
            ("/todo.md", "/"),
            ("/notes", "/notes"),
            ("/notes/.git", "/notes/.git"),
            ("/", "/"),
        ] {
            assert_eq!(directory_of(path), directory);
        }
    }

    #[test]
    fn an_exceeded_limit_leads_to_its_option() {
        let option = |kind, limit| {
            let error = Error::new(kind, Phase::Execute, "it failed").with_limit(ExceededLimit::new(limit, 1, 1));
            definition_of_exceeded_limit(&error).and_then(|limit| limit.flag())
        };
        assert_eq!(option(ErrorKind::Fuel, "fuel_max").as_deref(), Some("--fuel"));
        assert_eq!(
            option(ErrorKind::HostCalls, "host_calls_max").as_deref(),
            Some("--host-calls")
        );
        assert_eq!(
            option(ErrorKind::LoopLimit, "iterations_max").as_deref(),
            Some("--iterations")
        );
        assert_eq!(
            option(ErrorKind::LoopLimit, "wall_ms_max").as_deref(),
            Some("--run-wall")
        );
        assert_eq!(option(ErrorKind::FileBytes, "component_bytes_max"), None);
    }
}
