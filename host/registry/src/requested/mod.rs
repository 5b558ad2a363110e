//! The permissions that a package requests in the form of another host.
//!
//! - `wassette`: `NAME.policy.yaml` next to `NAME.wasm`.
//! - `ironclaw`: `NAME.capabilities.json` next to the `NAME.wasm` of a component of IronClaw.
//! - `act`: the section `act:component` of the component.

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

/// Maximum number of requested permissions.
const PERMISSIONS_MAX: usize = 256;

/// Maximum length of a requested permission in a message, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// The permissions that a package requests. A permission is not granted before an operator grants it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedPermissions {
    /// The requests that a grant can express exactly, as grants.
    pub grants: Vec<MissingGrant>,
    /// The other requests, as text.
    pub others: Vec<String>,
}

impl RequestedPermissions {
    /// Reads the requests in the component of a plugin and in the files next to it. `None` if there are no requests of a known form.
    /// A capability file is read only for a component of IronClaw: other programs may use its name for other content. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if a file or the section of the component cannot be
    /// understood, [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if a file cannot be read.
    pub fn read(plugin: &Plugin, component: &Path) -> Result<Option<Self>, Error> {
        let mut requested: Option<Self> = None;
        let mut forms = vec![(
            POLICY_EXTENSION,
            wassette::parse as fn(&str, &str, &str) -> Result<Self, Error>,
        )];
        if ironclaw::is_component(plugin.inspection()) {
            forms.push((CAPABILITIES_EXTENSION, ironclaw::parse));
        }
        let plugin = plugin.name();
        for (extension, parse) in forms {
            let path = component.with_extension(extension);
            let origin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(text) = text_file::read(&path, REQUESTS_BYTES_MAX)? {
                requested.get_or_insert_default().extend(parse(plugin, &text, &origin)?);
            }
        }
        let bytes = read_component(component, EngineLimits::default().component_bytes_max)?;
        if let Some(manifest) = act_manifest(&bytes)? {
            requested
                .get_or_insert_default()
                .extend(act::requested(plugin, &manifest));
        }
        Ok(requested)
    }

    fn extend(&mut self, other: Self) {
        self.grants.extend(other.grants);
        self.others.extend(other.others);
    }

    /// Adds a permission: as a grant, or else as text.
    fn add(&mut self, plugin: &str, grant: Option<(&str, String)>, text: &str) {
        if self.grants.len() + self.others.len() >= PERMISSIONS_MAX {
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

/// Returns the directory of the guest in a pattern for a directory with everything below it.
fn directory(pattern: &str) -> Option<String> {
    let path = pattern.strip_suffix("/**").unwrap_or(pattern).trim_matches('/');
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['*', '?', '[', '{', '\\', ':']);
    let is_text = !path.is_empty() && !path.chars().any(char::is_control);
    (is_text && path.split('/').all(is_plain)).then(|| format!("/{path}"))
}

/// Returns whether a grant can name the host: without a pattern and without an address range.
fn is_host(host: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    !host.is_empty() && host.len() <= 253 && host.chars().all(is_plain)
}

/// Returns the value of a grant for requests to a host: `GET,POST https://api.example.com/v1`.
fn http_grant(host: &str, path: &str, methods: &[String]) -> Option<String> {
    let is_method = |method: &String| !method.is_empty() && method.chars().all(|c| c.is_ascii_alphabetic());
    let is_path = path.starts_with('/') && path.chars().all(|c| c.is_ascii_graphic() && !"?#*'\"\\".contains(c));
    if !is_host(host) || !is_path || !methods.iter().all(is_method) {
        return None;
    }
    let url = if path == "/" {
        host.to_owned()
    } else {
        format!("https://{host}{path}")
    };
    Some(match methods {
        [] => url,
        methods => format!("{} {url}", methods.join(",").to_ascii_uppercase()),
    })
}
