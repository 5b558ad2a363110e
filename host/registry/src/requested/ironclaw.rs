//! Capability files of [IronClaw](https://github.com/nearai/ironclaw): `NAME.capabilities.json` next to `NAME.wasm`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{RequestedPermissions, guest_directory, http_grant, is_host};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Inspection;

/// The extension of a capability file.
pub(crate) const CAPABILITIES_EXTENSION: &str = "capabilities.json";

/// The directory in the guest for the files of the workspace, without the leading `/`.
const WORKSPACE: &str = "workspace";

/// The WIT package of IronClaw's interfaces. The names of the interfaces start with it.
const WIT_PACKAGE: &str = "near:agent/";

/// Returns whether a component was built for IronClaw.
pub(super) fn is_component(inspection: &Inspection) -> bool {
    let imports = inspection.imports.iter().map(|import| import.name.as_str());
    inspection
        .contract()
        .into_iter()
        .chain(imports)
        .any(|interface| interface.starts_with(WIT_PACKAGE))
}

/// Parses the requests in a capability file.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the text is not a capability file.
pub(super) fn parse(plugin: &str, text: &str, origin: &str) -> Result<RequestedPermissions, Error> {
    let file: CapabilityFile = serde_json::from_str(text).map_err(|error| {
        let message = format!("{origin} is not a capability file: {}", printable(&error.to_string()));
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("it must be a JSON object with the key `capabilities`")
    })?;
    let mut permissions = RequestedPermissions::default();
    file.capabilities.unwrap_or_default().add_to(&mut permissions, plugin);
    file.top_level.add_to(&mut permissions, plugin);
    Ok(permissions)
}

/// A capability file. Its other keys configure IronClaw.
#[derive(Deserialize)]
struct CapabilityFile {
    capabilities: Option<Capabilities>,
    /// The same keys at the top level of the file. Earlier versions of the format have them there.
    #[serde(flatten)]
    top_level: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    http: Option<Http>,
    secrets: Option<Secrets>,
    tool_invoke: Option<ToolInvoke>,
    workspace: Option<Workspace>,
}

#[derive(Deserialize)]
struct Http {
    #[serde(default)]
    allowlist: Vec<Endpoint>,
    #[serde(default)]
    credentials: BTreeMap<String, Credential>,
}

#[derive(Deserialize)]
struct Endpoint {
    host: String,
    path_prefix: Option<String>,
    #[serde(default)]
    methods: Vec<String>,
}

#[derive(Deserialize)]
struct Credential {
    secret_name: String,
    location: Location,
    #[serde(default)]
    host_patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Location {
    Bearer,
    Basic {},
    Header {
        name: String,
    },
    #[serde(alias = "query_param")]
    Query {
        name: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Secrets {
    #[serde(default)]
    allowed_names: Vec<String>,
}

#[derive(Deserialize)]
struct ToolInvoke {
    #[serde(default)]
    aliases: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Workspace {
    #[serde(default)]
    allowed_prefixes: Vec<String>,
}

impl Capabilities {
    /// Adds the capabilities to the permissions that a plugin requests.
    fn add_to(self, permissions: &mut RequestedPermissions, plugin: &str) {
        let mut http_secrets = Vec::new();
        if let Some(http) = self.http {
            for endpoint in http.allowlist {
                let path = endpoint.path_prefix.as_deref().unwrap_or("/");
                let grant = http_grant(&endpoint.host, path, &endpoint.methods).map(|value| ("http", value));
                let target = format!("{}{path}", endpoint.host);
                let text = if endpoint.methods.is_empty() {
                    format!("http {target}")
                } else {
                    format!("http {} {target}", endpoint.methods.join(","))
                };
                permissions.add(plugin, grant, &text);
            }
            for credential in http.credentials.into_values() {
                for host in &credential.host_patterns {
                    let grant = credential.grant(host).map(|value| ("secret", value));
                    permissions.add(plugin, grant, &format!("secret {} for {host}", credential.secret_name));
                }
                http_secrets.push(credential.secret_name);
            }
        }
        for name in self.secrets.into_iter().flat_map(|secrets| secrets.allowed_names) {
            if !http_secrets.contains(&name) {
                permissions.add(plugin, None, &format!("secret {name}"));
            }
        }
        for (alias, tool) in self.tool_invoke.into_iter().flat_map(|tools| tools.aliases) {
            permissions.add(plugin, None, &format!("tool {tool}, named {alias}"));
        }
        for prefix in self
            .workspace
            .into_iter()
            .flat_map(|workspace| workspace.allowed_prefixes)
        {
            let grant = guest_directory(&format!("{WORKSPACE}/{prefix}"));
            let grant = grant.map(|directory| ("files", format!("read {directory}")));
            permissions.add(plugin, grant, &format!("workspace {prefix}"));
        }
    }
}

impl Credential {
    /// Returns the value of a `secret` grant: the name of the secret, the host, and the part of a request that contains
    /// the secret. `None` if a grant cannot express one of these.
    fn grant(&self, host: &str) -> Option<String> {
        let is_name = |text: &str| {
            let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !text.is_empty() && text.chars().all(is_name_char)
        };
        let placement = match &self.location {
            Location::Bearer => "bearer".to_owned(),
            Location::Basic {} => "basic".to_owned(),
            Location::Header { name } if is_name(name) => format!("header:{name}"),
            Location::Query { name } if is_name(name) => format!("query:{name}"),
            Location::Header { .. } | Location::Query { .. } | Location::Other => return None,
        };
        (is_host(host) && is_name(&self.secret_name)).then(|| format!("{} {host} {placement}", self.secret_name))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CAPABILITY_FILE: &str = r#"{
        "version": "0.2.0",
        "capabilities": {
            "http": {
                "allowlist": [
                    {"host": "api.example.com", "path_prefix": "/v1/", "methods": ["GET", "post"]},
                    {"host": "example.com"},
                    {"host": "*.example.com"}
                ],
                "credentials": {
                    "token": {"secret_name": "token", "location": {"type": "bearer"}, "host_patterns": ["api.example.com", "*.x"]},
                    "key": {"secret_name": "key", "location": {"type": "header", "name": "X-Key"}, "host_patterns": ["example.com"]},
                    "odd": {"secret_name": "odd", "location": {"type": "url_path", "placeholder": "p"}, "host_patterns": ["example.com"]}
                }
            },
            "secrets": {"allowed_names": ["token", "other_*"]},
            "tool_invoke": {"aliases": {"find": "search"}}
        },
        "workspace": {"allowed_prefixes": ["notes/", "../secret"]},
        "auth": {"secret_name": "token"}
    }"#;

    #[test]
    fn requests_become_the_grants_that_would_fulfil_them() {
        let requested = parse("near", CAPABILITY_FILE, "near.capabilities.json").unwrap();
        let grants: Vec<_> = requested
            .grants
            .iter()
            .map(|grant| (&*grant.key, &*grant.value))
            .collect();
        assert_eq!(
            grants,
            [
                ("http", "GET,POST https://api.example.com/v1/"),
                ("http", "example.com"),
                ("secret", "key example.com header:X-Key"),
                ("secret", "token api.example.com bearer"),
                ("files", "read /workspace/notes"),
            ]
        );
        assert_eq!(
            requested.others,
            [
                "http *.example.com/",
                "secret odd for example.com",
                "secret token for *.x",
                "secret other_*",
                "tool search, named find",
                "workspace ../secret",
            ]
        );
    }

    #[test]
    fn the_error_of_an_invalid_capability_file_names_the_file() {
        for text in [
            "",
            "[]",
            "{\"capabilities\": 1}",
            "{\"http\": {\"allowlist\": [{}]}}",
            &"[".repeat(60_000),
        ] {
            let error = parse("near", text, "near.capabilities.json").unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration);
            assert!(error.message.contains("near.capabilities.json"), "{error}");
        }
    }
}
