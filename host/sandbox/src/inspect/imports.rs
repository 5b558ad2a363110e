//! The imports of a component, and whether the host implements them.

use serde::{Deserialize, Serialize};
use wasmparser::component_types::ComponentEntityType;

use super::check::CheckedComponent;
use super::interfaces::{PLUGIN_PACKAGE, PLUGIN_VERSION, WASI_VERSIONS, is_supported};
use super::reflect::shortened;
use toolwit_core::{Error, ErrorKind, Phase};

/// One import of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Import {
    /// The name that the component imports: `wasi:http/types@0.2.6`.
    pub name: String,
    /// Whether the host implements the import.
    pub support: ImportSupport,
}

/// Whether the host implements an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSupport {
    /// The host implements the import. Its use is denied unless it is granted.
    Linked,
    /// The import only defines types and needs no implementation.
    TypesOnly,
    /// The host does not implement an interface of this name and version.
    Unknown,
}

/// Lists the imports of a component.
pub(crate) fn list(checked: &CheckedComponent<'_>) -> Vec<Import> {
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

/// Refuses a component with an import that the host does not implement.
///
/// # Errors
/// [`ErrorKind::UnknownImport`], with the names of these imports.
pub(crate) fn require_supported(imports: &[Import]) -> Result<(), Error> {
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
    let suggestion = if first.starts_with(&format!("`{PLUGIN_PACKAGE}")) {
        format!(
            "this host offers `toolwit:plugin` {PLUGIN_VERSION}: build the component against that version, or use a newer host"
        )
    } else if first.starts_with("`wasi:") {
        format!("build it for WASI {WASI_VERSIONS}")
    } else {
        "compose it with a component that exports this import, or build it without".to_owned()
    };
    Err(Error::new(ErrorKind::UnknownImport, Phase::Link, message).with_suggestion(suggestion))
}
