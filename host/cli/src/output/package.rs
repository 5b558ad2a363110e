//! Output about packages: the JSON document of `list` and `inspect`, warnings, and the state of the compiled code.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::page::counted;
use toolwit::Error;
use toolwit::Toolwit;
use toolwit::registry::{Manifest, Package, TOOLS_NOT_DISCOVERED, Tier};
use toolwit::sandbox::{CodeCache, CompileStatus, Inspection, KEEP_STATE, Plugin, SkippedExport};
use toolwit::tool::ToolDefinition;

/// The document `{"name", "path", "digest", "version", "tier", "status", "reason", "wit_problem"?, "code", "tools",
/// "methods", "skipped"}`.
#[derive(Debug, Serialize)]
pub(crate) struct PackageDocument<'a> {
    name: &'a str,
    path: String,
    digest: Option<&'a str>,
    version: Option<&'a str>,
    tier: Tier,
    status: Status,
    /// The reason why the package is not ready.
    reason: Option<Cow<'a, str>>,
    /// The reason why the WIT file next to the component is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    wit_problem: Option<&'a str>,
    /// The state of the compiled code.
    code: &'static str,
    tools: &'a [ToolDefinition],
    /// The methods of the component's entity types, which become tools when a call returns an entity.
    methods: Vec<&'a ToolDefinition>,
    /// The exports that are not tools, with the reasons.
    skipped: &'a [SkippedExport],
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    Ready,
    /// The dynamic tools of the package have not been discovered yet, or their discovery failed.
    Undiscovered,
    Broken,
}

impl<'a> PackageDocument<'a> {
    /// Describes a package of a plugin directory.
    pub(crate) fn of(package: &'a Package, code_states: &CodeStates) -> Self {
        let inspection = package.plugin().map(|plugin| &**plugin.inspection());
        let manifest = package.manifest.as_deref();
        let document = Self::new(
            &package.name,
            &package.path,
            inspection,
            manifest,
            package.broken_reason(),
        );
        Self {
            code: package
                .plugin()
                .map_or(CompileStatus::NotStarted.word(), |plugin| code_states.of_plugin(plugin)),
            reason: match package.discovery_error() {
                Some(error) => Some(Cow::Owned(error.message.clone())),
                None => document.reason,
            },
            ..document
        }
    }

    /// Describes a component. `error` is the reason why it is broken; `None` if it is usable.
    pub(crate) fn new(
        name: &'a str,
        path: &Path,
        inspection: Option<&'a Inspection>,
        manifest: Option<&'a Manifest>,
        error: Option<&'a Error>,
    ) -> Self {
        let (status, reason) = match (error, inspection) {
            (Some(error), _) => (Status::Broken, Some(Cow::Borrowed(error.message.as_str()))),
            (None, Some(inspection)) if inspection.dynamic_tools_state().is_undiscovered() => {
                (Status::Undiscovered, Some(Cow::Borrowed(TOOLS_NOT_DISCOVERED)))
            }
            (None, _) => (Status::Ready, None),
        };
        Self {
            name,
            path: path.display().to_string(),
            digest: inspection.map(|inspection| inspection.digest.as_str()),
            version: manifest.and_then(|manifest| manifest.version.as_deref()),
            tier: manifest.map(Manifest::tier).unwrap_or_default(),
            status,
            reason,
            wit_problem: inspection.and_then(|inspection| inspection.wit_problem.as_deref()),
            code: CompileStatus::NotStarted.word(),
            tools: inspection.map_or(&[], |inspection| &inspection.tools),
            methods: inspection.into_iter().flat_map(methods).collect(),
            skipped: inspection.map_or(&[], |inspection| &inspection.skipped),
        }
    }

    /// Sets the state of the compiled code.
    pub(crate) fn with_code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }
}

/// Returns the methods of the entity types of a component.
pub(crate) fn methods(inspection: &Inspection) -> impl Iterator<Item = &ToolDefinition> {
    inspection.entities.iter().flat_map(|entity_type| &entity_type.methods)
}

/// Maximum number of skipped exports that [`reasons_for_no_tools`] lists.
const LISTED_EXPORTS_MAX: usize = 3;

/// Returns the reasons why a component has no tools.
pub(crate) fn reasons_for_no_tools(inspection: &Inspection) -> Vec<String> {
    if !inspection.entities.is_empty() {
        return vec!["no function returns one of its entities".to_owned()];
    }
    let mut skipped = inspection.skipped_exports_of_author();
    let mut reasons: Vec<_> = skipped
        .by_ref()
        .take(LISTED_EXPORTS_MAX)
        .map(|skipped| format!("it exports `{}`: {}", skipped.export, skipped.reason))
        .collect();
    match skipped.count() {
        0 if reasons.is_empty() => reasons.push("it exports no functions".to_owned()),
        0 => {}
        more => reasons.push(format!(
            "it has {}; `toolwit inspect FILE` lists all exports",
            counted(more, "more export")
        )),
    }
    reasons
}

/// Returns the warning that the WIT file of a plugin is not used.
pub(crate) fn wit_warning(plugin: &str, problem: &str) -> String {
    format!("`{plugin}.wit` is not used: {problem}")
}

/// Returns a warning for a function whose effect is lost when its call ends. `None` if the component has no such function.
pub(crate) fn lost_state_warning(inspection: &Inspection) -> Option<String> {
    let function = inspection.lost_state()?;
    Some(format!(
        "`{function}` returns nothing, and what it keeps in the component is lost when its call ends: {KEEP_STATE}"
    ))
}

/// Finds the state of a component's compiled code, in the loaded plugin or in the code cache.
pub(crate) struct CodeStates {
    cached_digests: BTreeSet<String>,
}

impl CodeStates {
    pub(crate) fn of_host(host: &Toolwit) -> Self {
        Self::in_cache(host.runtime().code_cache())
    }

    pub(crate) fn in_cache(cache: Option<&CodeCache>) -> Self {
        let digests = cache.and_then(|cache| cache.digests().ok());
        Self {
            cached_digests: digests.unwrap_or_default(),
        }
    }

    /// Returns the state of the compiled code of a component, from the code cache alone.
    pub(crate) fn of_digest(&self, digest: &str) -> &'static str {
        if self.cached_digests.contains(digest) {
            "compiled"
        } else {
            CompileStatus::NotStarted.word()
        }
    }

    /// Returns the state of the compiled code of a plugin. If the plugin has not been compiled, looks in the code cache.
    fn of_plugin(&self, plugin: &Plugin) -> &'static str {
        match plugin.compile_status() {
            CompileStatus::NotStarted => self.of_digest(plugin.digest()),
            status => status.word(),
        }
    }
}
