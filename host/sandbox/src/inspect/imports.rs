//! The imports of a component, and whether the host implements them.

use serde::{Deserialize, Serialize};
use wasmparser::component_types::ComponentEntityType;

use super::check::CheckedComponent;
use super::interfaces::{
    CONFIG_STORES, InterfaceOffer, KEYVALUE_STORES, NEAR_HOST, PLUGIN_PACKAGE, PLUGIN_VERSION, WASI2_INTERFACES,
    WASI2_VERSIONS, offer_of,
};
use super::reflect::shortened;
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum number of functions that are listed for an import. Each interface of the host has fewer functions.
const IMPORT_FUNCTIONS_MAX: usize = 64;

/// One import of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Import {
    /// The name of the import, such as `wasi:http/types@0.2.6`.
    pub name: String,
    /// Whether the host implements the import.
    pub support: ImportSupport,
    /// The imported functions, if the functions of the interface belong to several capabilities. Otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
}

impl Import {
    /// Returns the names of the import, from which `DeclaredCapabilities::from_imports` derives the capabilities of the component:
    /// the name of the interface, and each listed function as `INTERFACE#FUNCTION`. The names have no version.
    pub(crate) fn declaring_names(&self) -> impl Iterator<Item = String> {
        let interface = self.name.split('@').next().unwrap_or_default();
        let functions = self.functions.iter();
        let functions = functions.map(move |function| format!("{interface}#{function}"));
        std::iter::once(interface.to_owned()).chain(functions)
    }
}

/// Whether the host implements an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSupport {
    /// The host implements the import, and denies every access through it that is not granted.
    Linked,
    /// The host implements the import as part of WASI 0.3, which the operator has to enable; see [`WasiVersions`].
    Wasi3,
    /// The import only has types, which need no implementation.
    TypesOnly,
    /// The host does not implement an import of this name and version.
    Unknown,
}

/// Lists the imports of a component.
pub(crate) fn list(checked: &CheckedComponent<'_>) -> Vec<Import> {
    let support_of = |name: &str| match checked.types.component_item_for_import(name).map(|item| &item.ty) {
        Some(ComponentEntityType::Type { .. }) => ImportSupport::TypesOnly,
        Some(ComponentEntityType::Instance(_)) if offer_of(name) == InterfaceOffer::Always => ImportSupport::Linked,
        Some(ComponentEntityType::Instance(_)) if offer_of(name) == InterfaceOffer::WithWasi3 => ImportSupport::Wasi3,
        Some(ComponentEntityType::Instance(id)) => {
            let is_type = |item: &wasmparser::component_types::ComponentItem| {
                use wasmparser::component_types::ComponentAnyTypeId::Resource;
                matches!(&item.ty, ComponentEntityType::Type { created, .. } if !matches!(created, Resource(_)))
            };
            let has_only_types = checked.types[*id].exports.values().all(is_type);
            if has_only_types {
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
            functions: functions_of(checked, name),
        })
        .collect()
}

/// Returns the imported functions of [`NEAR_HOST`], because they belong to several capabilities. Components of the host IronClaw
/// import this interface. Empty for every other import.
fn functions_of(checked: &CheckedComponent<'_>, import: &str) -> Vec<String> {
    let interface = import.split('@').next().unwrap_or_default();
    match checked.types.component_item_for_import(import).map(|item| &item.ty) {
        Some(ComponentEntityType::Instance(id)) if interface == NEAR_HOST => {
            let exports = checked.types[*id].exports.iter();
            let functions = exports.filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)));
            functions
                .map(|(name, _)| shortened(name))
                .take(IMPORT_FUNCTIONS_MAX)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The versions of WASI that a host offers to components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WasiVersions {
    /// WASI 0.2.
    #[default]
    Wasi2,
    /// WASI 0.2 and 0.3.
    ///
    /// Grants, limits and refusals are the same for both versions. But wasmtime publishes no security patches for errors that only
    /// its implementation of 0.3 has, so the operator has to enable WASI 0.3.
    Wasi2And3,
}

/// The source of the error for a component that needs WASI 0.3 while WASI 0.3 is disabled. A program can recognize the error by
/// this source, and show its own hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("WASI 0.3 is disabled")]
#[non_exhaustive]
pub struct Wasi3Disabled;

/// Returns whether a component imports interfaces of WASI 0.3.
pub(crate) fn needs_wasi3(imports: &[Import]) -> bool {
    imports.iter().any(|import| import.support == ImportSupport::Wasi3)
}

/// Refuses a component with an import that the host does not implement, or that the operator has not enabled.
///
/// # Errors
/// [`ErrorKind::UnknownImport`]. The message names at most eight imports that are not implemented. If all imports are
/// implemented, the message names the first import that is not enabled.
pub(crate) fn require_supported(imports: &[Import], wasi: WasiVersions) -> Result<(), Error> {
    require_implemented(imports)?;
    let disabled = imports.iter().find(|import| import.support == ImportSupport::Wasi3);
    match (disabled, wasi) {
        (Some(import), WasiVersions::Wasi2) => {
            let message = format!(
                "it imports `{}`, and WASI 0.3 is disabled: wasmtime publishes no security patches for errors that only \
                 its implementation of 0.3 has",
                shortened(&import.name)
            );
            Err(Error::new(ErrorKind::UnknownImport, Phase::Link, message)
                .with_suggestion("enable it with `WasiVersions::Wasi2And3`")
                .with_source(Wasi3Disabled))
        }
        _ => Ok(()),
    }
}

/// Refuses a component with an import that the host does not implement.
fn require_implemented(imports: &[Import]) -> Result<(), Error> {
    const NAMES_MAX: usize = 8;
    let unknown: Vec<_> = imports
        .iter()
        .filter(|import| import.support == ImportSupport::Unknown)
        .map(|import| shortened(&import.name))
        .collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let omitted = unknown.len().saturating_sub(NAMES_MAX);
    let names: Vec<_> = unknown.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
    let mut message = format!("it imports {}, which the host does not offer", names.join(", "));
    if omitted > 0 {
        message.push_str(&format!(" ({omitted} more)"));
    }
    let suggestion = suggestion(first);
    Err(Error::new(ErrorKind::UnknownImport, Phase::Link, message).with_suggestion(suggestion))
}

/// Returns a fix for the author of a component with an import that the host does not implement.
fn suggestion(import: &str) -> String {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    if interface.starts_with(PLUGIN_PACKAGE) {
        format!(
            "this host offers `toolwit:plugin` {PLUGIN_VERSION}, and runs components built against {PLUGIN_VERSION} and earlier 0.1 \
             versions: build the component against one of them, or use a newer host"
        )
    } else if interface.starts_with("wasi:keyvalue/") {
        format!(
            "the host offers `{}`; build the component for it",
            KEYVALUE_STORES.join("`, `")
        )
    } else if interface.starts_with("wasi:config/") {
        format!(
            "the host offers `{}`; build the component for one of them",
            CONFIG_STORES.join("`, `")
        )
    } else if interface.starts_with("wasi:") && version.starts_with("0.3.0-") {
        "this version is a draft of WASI 0.3; build the component again with current tools, for WASI 0.3.0".to_owned()
    } else if interface.starts_with("wasi:") && version.starts_with("0.3.") {
        "the host offers only some interfaces of WASI 0.3; build the component for WASI 0.2".to_owned()
    } else if WASI2_INTERFACES.contains(&interface) {
        format!("build it for WASI {WASI2_VERSIONS}")
    } else {
        "compose it with a component that exports this import, or build it without".to_owned()
    }
}
