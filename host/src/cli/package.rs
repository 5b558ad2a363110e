//! A plugin as `list` and `inspect` write it in JSON.

use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::plugin::Inspection;
use crate::registry::Package;
use crate::tool::ToolDefinition;

/// `{"name", "path", "digest", "version", "tier", "status", "reason", "tools"}`.
#[derive(Debug, Serialize)]
pub(super) struct PackageDocument<'a> {
    name: &'a str,
    path: String,
    digest: Option<&'a str>,
    version: Option<&'a str>,
    tier: Tier,
    status: Status,
    reason: Option<&'a str>,
    tools: &'a [ToolDefinition],
}

/// How much is known about a plugin beyond its component.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Tier {
    /// Nothing: there is no manifest.
    Minimal,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    Ready,
    Broken,
}

impl<'a> PackageDocument<'a> {
    /// Describes a package of a plugin directory.
    pub(super) fn of(package: &'a Package) -> Self {
        let inspection = package.plugin().map(|plugin| &**plugin.inspection());
        Self::new(&package.name, &package.path, inspection, package.reason())
    }

    /// Describes a component that was inspected, and may be unusable all the same.
    pub(super) fn new(
        name: &'a str,
        path: &Path,
        inspection: Option<&'a Inspection>,
        reason: Option<&'a Error>,
    ) -> Self {
        Self {
            name,
            path: path.display().to_string(),
            digest: inspection.map(|inspection| inspection.digest.as_str()),
            version: None,
            tier: Tier::Minimal,
            status: if reason.is_none() {
                Status::Ready
            } else {
                Status::Broken
            },
            reason: reason.map(|error| error.message.as_str()),
            tools: inspection.map_or(&[], |inspection| &inspection.tools),
        }
    }
}
