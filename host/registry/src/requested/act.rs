//! The capabilities that a component of [ACT](https://actcore.dev) declares.

use serde_json::Value;

use super::{RequestedPermissions, guest_directory, http_grant};

/// Returns the permissions that the manifest in a component's section `act:component` requests. A capability without a
/// list, or with an empty list, requests everything of its kind. No grant can express such a request, so it is returned
/// as text.
pub(super) fn requested_permissions(plugin: &str, manifest: &Value) -> RequestedPermissions {
    let mut permissions = RequestedPermissions::default();
    let capabilities = manifest.pointer("/std/capabilities").and_then(Value::as_object);
    for (capability, declared) in capabilities.into_iter().flatten() {
        // The name of the list depends on the version of the format.
        let list = declared.get("allow").or_else(|| declared.get("constraints"));
        let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if entries.is_empty() {
            permissions.add(plugin, None, capability);
        }
        for entry in entries {
            let grant = match capability.as_str() {
                "wasi:http" => http_entry_grant(entry),
                "wasi:filesystem" => files_entry_grant(entry),
                _ => None,
            };
            permissions.add(plugin, grant, &format!("{capability} {entry}"));
        }
    }
    permissions
}

/// Returns the key and the value of the grant for HTTPS requests to a host. `None` if a grant cannot express the entry.
fn http_entry_grant(entry: &Value) -> Option<(&'static str, String)> {
    let is_default_port = entry
        .get("ports")
        .is_none_or(|ports| *ports == serde_json::json!([443]));
    let is_https = entry.get("scheme").is_none_or(|scheme| scheme == "https");
    let methods = match entry.get("methods") {
        None => Vec::new(),
        Some(methods) => serde_json::from_value(methods.clone()).ok()?,
    };
    let host = entry.get("host")?.as_str().filter(|_| is_https && is_default_port)?;
    Some(("http", http_grant(host, "/", &methods)?))
}

/// Returns the key and the value of the grant for a directory. `None` if a grant cannot express the entry.
fn files_entry_grant(entry: &Value) -> Option<(&'static str, String)> {
    let directory = guest_directory(entry.get("path")?.as_str()?)?;
    let access = match entry.get("mode")?.as_str()? {
        "ro" => "read",
        "rw" => "read-write",
        _ => return None,
    };
    Some(("files", format!("{access} {directory}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declared_capabilities_become_the_grants_that_would_fulfil_them() {
        let manifest = json!({"std": {"name": "web", "capabilities": {
            "wasi:http": {"allow": [
                {"host": "api.example.com", "methods": ["get", "post"]},
                {"host": "example.com", "scheme": "http"},
                {"host": "*"},
            ]},
            "wasi:filesystem": {"constraints": [
                {"path": "/data/**", "mode": "rw"},
                {"path": "**", "mode": "ro"},
                {"path": "/data/../etc/**", "mode": "ro"},
            ]},
            "wasi:sockets": {},
        }}});
        let requested = requested_permissions("web", &manifest);
        let grants: Vec<_> = requested
            .grants
            .iter()
            .map(|grant| (&*grant.key, &*grant.value))
            .collect();
        assert_eq!(
            grants,
            [("http", "GET,POST api.example.com"), ("files", "read-write /data")]
        );
        assert_eq!(requested.others.len(), 5, "{:?}", requested.others);
        assert!(
            requested.others.contains(&"wasi:sockets".to_owned()),
            "{:?}",
            requested.others
        );
    }

    #[test]
    fn a_manifest_of_another_form_requests_nothing() {
        for manifest in [
            json!(null),
            json!({}),
            json!({"std": {"capabilities": []}}),
            json!({"std": 1}),
        ] {
            assert_eq!(
                requested_permissions("web", &manifest),
                RequestedPermissions::default(),
                "{manifest}"
            );
        }
    }
}
