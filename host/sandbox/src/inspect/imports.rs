//! What a component imports, and whether the host offers it.

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use wasmparser::component_types::ComponentEntityType;

use super::check::Checked;
use super::reflect::shortened;
use crate::link::config::CONFIG_STORES;
use crate::link::host_api;
use crate::link::keyvalue::KEYVALUE_STORES;
use toolwit_core::{Error, ErrorKind, Phase};

/// Interfaces that link, to implementations that deny what is not granted. A component may import any version that is
/// compatible, as semver has it, with the one that the host implements.
const SUPPORTED: [&str; 29] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// The versions of WASI that the host implements.
const WASI_VERSIONS: &str = ">=0.2.0, <0.3.0";

/// One import of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Import {
    /// The name as the component writes it: `wasi:http/types@0.2.6`.
    pub name: String,
    /// How the host answers.
    pub support: ImportSupport,
}

/// How the host answers an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSupport {
    /// It links. An import is not yet a use, and a use is denied unless granted.
    Linked,
    /// It only names types, and needs nobody behind it.
    TypesOnly,
    /// The host has nothing of this name or version.
    Unknown,
}

/// Lists what a component imports.
pub(crate) fn list(checked: &Checked<'_>) -> Vec<Import> {
    let support_of = |name: &str| match checked.types.component_item_for_import(name).map(|item| &item.ty) {
        Some(ComponentEntityType::Type { .. }) => ImportSupport::TypesOnly,
        Some(ComponentEntityType::Instance(_)) if is_supported(name) => ImportSupport::Linked,
        Some(ComponentEntityType::Instance(id)) => {
            let is_type = |item: &wasmparser::component_types::ComponentItem| {
                use wasmparser::component_types::ComponentAnyTypeId::Resource;
                matches!(&item.ty, ComponentEntityType::Type { created, .. } if !matches!(created, Resource(_)))
            };
            let only_types = checked.types[*id].exports.values().all(is_type);
            if only_types {
                ImportSupport::TypesOnly
            } else {
                ImportSupport::Unknown
            }
        }
        _ => ImportSupport::Unknown,
    };
    checked
        .imports
        .iter()
        .map(|name| Import {
            name: (*name).to_owned(),
            support: support_of(name),
        })
        .collect()
}

/// Refuses a component that needs what the host does not have.
///
/// # Errors
/// [`ErrorKind::UnknownImport`], naming every such import.
pub(crate) fn require_known(imports: &[Import]) -> Result<(), Error> {
    const NAMES_MAX: usize = 8;
    let unknown: Vec<_> = imports
        .iter()
        .filter(|import| import.support == ImportSupport::Unknown)
        .map(|import| format!("`{}`", shortened(&import.name)))
        .collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let more = unknown.len().saturating_sub(NAMES_MAX);
    let mut message = format!(
        "it imports {}, which the host does not offer",
        unknown[..unknown.len() - more].join(", ")
    );
    if more > 0 {
        message.push_str(&format!(" ({more} more)"));
    }
    let suggestion = if first.starts_with(&format!("`{}", host_api::PACKAGE)) {
        format!(
            "this host offers `toolwit:plugin` {}: build the component against that version, or use a newer host",
            host_api::VERSION
        )
    } else if first.starts_with("`wasi:") {
        format!("build it for WASI {WASI_VERSIONS}")
    } else {
        "compose it with a component that exports this import, or build it without".to_owned()
    };
    Err(Error::new(ErrorKind::UnknownImport, Phase::Link, message).with_suggestion(suggestion))
}

fn is_supported(import: &str) -> bool {
    if CONFIG_STORES.contains(&import) || KEYVALUE_STORES.contains(&import) {
        return true;
    }
    let Some((interface, version)) = import.split_once('@') else {
        return false;
    };
    if host_api::INTERFACES.contains(&interface) {
        return Version::parse(version).is_ok_and(|version| host_api::is_compatible(&version));
    }
    let in_range = |version: Version| {
        VersionReq::parse(WASI_VERSIONS).is_ok_and(|range| range.matches(&version)) && version.pre.is_empty()
    };
    SUPPORTED.contains(&interface) && Version::parse(version).is_ok_and(in_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatible_versions_link_and_others_do_not() {
        for name in [
            "wasi:cli/environment@0.2.0",
            "wasi:http/types@0.2.12",
            "wasi:sockets/tcp@0.2.6",
        ] {
            assert!(is_supported(name), "{name}");
        }
        for name in [
            "wasi:cli/environment@0.3.0",
            "wasi:cli/environment",
            "wasi:nn/tensor@0.2.0",
            "a:b/c@0.2.0",
            "x",
        ] {
            assert!(!is_supported(name), "{name}");
        }
    }
}
