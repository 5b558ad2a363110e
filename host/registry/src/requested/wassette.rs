//! Policy files of [Wassette](https://github.com/microsoft/wassette), version 1: `NAME.policy.yaml` next to
//! `NAME.wasm`.

use serde::Deserialize;

use super::{RequestedPermissions, guest_directory, is_host};
use crate::text_file;
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};

/// The extension of a policy file.
pub(crate) const POLICY_EXTENSION: &str = "policy.yaml";

/// The scheme of the URIs of directories in a policy file.
const FILES_SCHEME: &str = "fs://";

/// Parses the requests in a policy file.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the text is not a policy of version 1.
pub(super) fn parse(plugin: &str, text: &str, origin: &str) -> Result<RequestedPermissions, Error> {
    let policy: Policy = serde_saphyr::from_str(text).map_err(|error| {
        // The first line has the reason; the other lines quote the file.
        let report = error.to_string();
        let first_line = report.lines().next().unwrap_or_default();
        let reason = first_line.strip_prefix("error: ").unwrap_or(first_line);
        let message = format!("{origin} is not a policy: {}", printable(reason));
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("it must have the key `version`, and can have `description` and `permissions`")
    })?;
    let version = policy.version;
    if version.trim() != "1" && !version.starts_with("1.") {
        let version = printable(&version);
        return Err(text_file::unusable(
            origin,
            &format!("it has the version {version}, but only version 1 is supported"),
        ));
    }
    Ok(policy.permissions.into_requested(plugin))
}

/// A policy file. Its denials are ignored, because a plugin has only the permissions that are granted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    version: String,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    permissions: Permissions,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Permissions {
    storage: Option<AccessList<Storage>>,
    network: Option<AccessList<Network>>,
    environment: Option<AccessList<Variable>>,
    runtime: Option<serde_json::Value>,
    resources: Option<serde_json::Value>,
    ipc: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessList<T> {
    allow: Option<Vec<T>>,
    #[serde(default, rename = "deny")]
    _deny: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Storage {
    uri: String,
    access: Vec<Access>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Access {
    Read,
    Write,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    host: Option<String>,
    cidr: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    key: String,
}

impl Permissions {
    /// Converts the lists of allowed items to the permissions that a plugin requests.
    fn into_requested(self, plugin: &str) -> RequestedPermissions {
        let mut permissions = RequestedPermissions::default();
        for storage in allowed_items(self.storage) {
            let is_writable = storage.access.contains(&Access::Write);
            let access = if is_writable { "read-write" } else { "read" };
            let grant = storage
                .uri
                .strip_prefix(FILES_SCHEME)
                .and_then(guest_directory)
                .map(|directory| ("files", format!("{access} {directory}")));
            permissions.add(plugin, grant, &format!("storage {} ({access})", storage.uri));
        }
        for network in allowed_items(self.network) {
            let host = network.host.filter(|_| network.cidr.is_none());
            let target = host
                .as_deref()
                .or(network.cidr.as_deref())
                .unwrap_or_default()
                .to_owned();
            let grant = host.filter(|host| is_host(host)).map(|host| ("http", host));
            permissions.add(plugin, grant, &format!("network {target}"));
        }
        for variable in allowed_items(self.environment) {
            let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_name = !variable.key.is_empty() && variable.key.chars().all(is_name_char);
            let grant = is_name.then(|| ("env", variable.key.clone()));
            permissions.add(plugin, grant, &format!("environment {}", variable.key));
        }
        for (name, section) in [
            ("runtime", self.runtime),
            ("resources", self.resources),
            ("ipc", self.ipc),
        ] {
            if section.is_some_and(|section| !section.is_null()) {
                permissions.add(plugin, None, name);
            }
        }
        permissions
    }
}

fn allowed_items<T>(list: Option<AccessList<T>>) -> Vec<T> {
    list.and_then(|list| list.allow).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
version: "1.0"
description: Fetches the weather
permissions:
  storage:
    allow:
      - uri: "fs://work/agent/**"
        access: ["read", "write"]
      - uri: "fs:///srv/data"
        access: ["read"]
      - uri: "fs://**"
        access: ["read"]
      - uri: "fs:///srv/../etc/**"
        access: ["read"]
    deny:
      - uri: "fs:///srv/data/secret/**"
        access: ["read"]
  network:
    allow:
      - host: "api.example.com"
      - host: "*.example.com"
      - cidr: "10.0.0.0/8"
  environment:
    allow:
      - key: "API_KEY"
      - key: "A=B\u001b[2J"
  resources:
    limits: {memory: "512Mi"}
"#;

    fn parse(text: &str) -> Result<RequestedPermissions, Error> {
        super::parse("fetch", text, "fetch.policy.yaml")
    }

    #[test]
    fn requests_become_the_grants_that_would_fulfil_them() {
        let requested = parse(POLICY).unwrap();
        let grants: Vec<_> = requested
            .grants
            .iter()
            .map(|grant| (&*grant.key, &*grant.value))
            .collect();
        assert_eq!(
            grants,
            [
                ("files", "read-write /work/agent"),
                ("files", "read /srv/data"),
                ("http", "api.example.com"),
                ("env", "API_KEY"),
            ]
        );
        assert!(requested.grants.iter().all(|grant| grant.plugin == "fetch"));
        assert_eq!(requested.others.len(), 6, "{:?}", requested.others);
        assert_eq!(requested.others[0], "storage fs://** (read)");
        assert!(!requested.others.concat().contains('\u{1b}'), "{:?}", requested.others);
        assert_eq!(requested.others[5], "resources");
    }

    #[test]
    fn an_empty_policy_requests_nothing() {
        for text in [
            "version: \"1.0\"\n",
            "version: 1.0\npermissions: {}\n",
            "version: \"1\"\npermissions:\n  network: {}\n",
        ] {
            assert_eq!(parse(text).unwrap(), RequestedPermissions::default(), "{text}");
        }
    }

    #[test]
    fn the_error_of_an_invalid_policy_names_the_file() {
        let alias_bomb = format!(
            "version: \"1.0\"\na: &a [x,x]\n{}",
            "b: [*a,*a,*a,*a,*a]\n".repeat(2000)
        );
        for (text, expected) in [
            ("version: \"2.0\"\n", "version 2.0"),
            ("permissions: {}\n", "version"),
            ("version: \"1.0\"\nversion: \"1.1\"\n", "fetch.policy.yaml"),
            ("version: \"1.0\"\npermissions:\n  files: {}\n", "files"),
            (
                "version: \"1.0\"\npermissions:\n  storage:\n    allow:\n      - uri: fs://a\n        access: [own]\n",
                "own",
            ),
            ("- a\n", "fetch.policy.yaml"),
            ("version: [", "fetch.policy.yaml"),
            ("", "fetch.policy.yaml"),
            (&alias_bomb, "fetch.policy.yaml"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration);
            assert_eq!(error.message.lines().count(), 1, "{error}");
            assert!(
                error.message.contains(expected) && error.message.contains("fetch.policy.yaml"),
                "{text:.40}: {error}"
            );
        }
    }
}
