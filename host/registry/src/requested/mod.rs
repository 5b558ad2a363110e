//! The permissions that a package requests in a format of another host.
//!
//! - `wassette`: `NAME.policy.yaml` next to `NAME.wasm`.
//! - `ironclaw`: `NAME.capabilities.json` next to the `NAME.wasm` of a component of IronClaw.
//! - `act`: the section `act:component` in the component.

mod act;
mod ironclaw;
mod wassette;

use std::path::Path;

pub(crate) use ironclaw::CAPABILITIES_EXTENSION;
pub(crate) use wassette::POLICY_EXTENSION;

use crate::text_file;
use toolwit_core::limits::{EngineLimits, REQUESTS_BYTES_MAX};
use toolwit_core::text::printable;
use toolwit_core::{Error, MissingGrant};
use toolwit_sandbox::{Plugin, act_manifest, read_component};

/// Maximum number of requested permissions in one file or section. Further permissions are only counted.
const PERMISSIONS_MAX: usize = 256;

/// Maximum length of a requested permission as text, in characters. Longer text is cut off.
const TEXT_CHARS_MAX: usize = 200;

/// The permissions that a package requests in formats of other hosts. The package gets none of them until an operator
/// grants them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedPermissions {
    /// The requests that a grant can express, as grants. A grant may allow more than the request: the denials of a policy
    /// file are ignored, and write access includes read access.
    pub grants: Vec<MissingGrant>,
    /// The other requests, as text.
    pub others: Vec<String>,
    /// The number of further requests, which are omitted because a file or section has more than 256.
    pub omitted: usize,
}

impl RequestedPermissions {
    /// Reads the requests in the component of a plugin and in the files next to it. `None` if there are no such files and
    /// no such section. A capability file is read only for a component that was built for IronClaw, because the
    /// extension `.capabilities.json` may have another meaning for other components. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if a policy file, a capability file or the
    /// section is invalid or too large; [`ErrorKind::FileBytes`](toolwit_core::ErrorKind::FileBytes) if the component
    /// is too large; [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if a file cannot be read.
    pub fn read(plugin: &Plugin, component_path: &Path) -> Result<Option<Self>, Error> {
        let mut permissions: Option<Self> = None;
        let mut formats = vec![(
            POLICY_EXTENSION,
            wassette::parse as fn(&str, &str, &str) -> Result<Self, Error>,
        )];
        if ironclaw::is_component(plugin.inspection()) {
            formats.push((CAPABILITIES_EXTENSION, ironclaw::parse));
        }
        let plugin_name = plugin.name();
        for (extension, parse) in formats {
            let path = component_path.with_extension(extension);
            let origin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(text) = text_file::read(&path, REQUESTS_BYTES_MAX)? {
                permissions
                    .get_or_insert_default()
                    .extend(parse(plugin_name, &text, &origin)?);
            }
        }
        let bytes = read_component(component_path, EngineLimits::default().component_bytes_max)?;
        if let Some(manifest) = act_manifest(&bytes)? {
            permissions
                .get_or_insert_default()
                .extend(act::requested_permissions(plugin_name, &manifest));
        }
        Ok(permissions)
    }

    fn extend(&mut self, other: Self) {
        self.grants.extend(other.grants);
        self.others.extend(other.others);
        self.omitted += other.omitted;
    }

    /// Adds a permission: as a grant if `grant` has its key and value, otherwise as `text`. If there are already
    /// [`PERMISSIONS_MAX`] permissions, only counts it.
    fn add(&mut self, plugin: &str, grant: Option<(&str, String)>, text: &str) {
        if self.grants.len() + self.others.len() >= PERMISSIONS_MAX {
            self.omitted += 1;
            return;
        }
        match grant {
            Some((key, value)) => self.grants.push(MissingGrant {
                plugin: plugin.to_owned(),
                key: key.to_owned(),
                value,
            }),
            None => self
                .others
                .push(printable(text).to_string().chars().take(TEXT_CHARS_MAX).collect()),
        }
    }
}

/// Returns the absolute path of the guest directory that a pattern such as `/data/**` or `data` selects. `None` if the
/// pattern contains other wildcards, `.`, `..` or a character that is not allowed.
fn guest_directory(pattern: &str) -> Option<String> {
    let path = pattern.strip_suffix("/**").unwrap_or(pattern).trim_matches('/');
    let is_literal =
        |segment: &str| !matches!(segment, "" | "." | "..") && !segment.contains(['*', '?', '[', '{', '\\', ':']);
    let is_valid = !path.is_empty() && !path.chars().any(char::is_control);
    (is_valid && path.split('/').all(is_literal)).then(|| format!("/{path}"))
}

/// The maximum length of a domain name.
const HOST_BYTES_MAX: usize = 253;

/// Returns whether `host` is a domain name or an address, which a grant can name. A pattern or a range of addresses is
/// not a host.
fn is_host(host: &str) -> bool {
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.chars().all(is_host_char)
}

/// Returns the value of a grant for requests to a host, such as `GET,POST https://api.example.com/v1`. `None` if a
/// grant cannot express the host, the path or the methods. An empty list means all methods.
fn http_grant(host: &str, path: &str, methods: &[String]) -> Option<String> {
    let is_method = |method: &String| !method.is_empty() && method.chars().all(|c| c.is_ascii_alphabetic());
    let is_path = path.starts_with('/') && path.chars().all(|c| c.is_ascii_graphic() && !"?#*'\"\\".contains(c));
    if !is_host(host) || !is_path || !methods.iter().all(is_method) {
        return None;
    }
    let target = if path == "/" {
        host.to_owned()
    } else {
        format!("https://{host}{path}")
    };
    Some(match methods {
        [] => target,
        methods => format!("{} {target}", methods.join(",").to_ascii_uppercase()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_above_the_limit_are_counted() {
        let requested = |count: usize| {
            let mut permissions = RequestedPermissions::default();
            for number in 0..count {
                let grant = (number % 2 == 0).then(|| ("env", format!("VARIABLE_{number}")));
                permissions.add("fetch", grant, &format!("request {number}"));
            }
            permissions
        };
        let mut permissions = requested(PERMISSIONS_MAX);
        assert_eq!(permissions.omitted, 0);
        permissions.extend(requested(PERMISSIONS_MAX + 3));
        assert_eq!(permissions.grants.len() + permissions.others.len(), 2 * PERMISSIONS_MAX);
        assert_eq!(permissions.omitted, 3);
    }
}
