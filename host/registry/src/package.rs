//! A component file in a plugin directory, usable or broken.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::{Manifest, Tier};
use toolwit_core::text::snake_case;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Plugin;

/// What the file name of a component ends with.
pub(super) const EXTENSION: &str = "wasm";

/// Names that would forge the ids of tools which are no plugin's.
const RESERVED: [&str; 3] = ["host", "mcp", "native"];

/// A component file, and what became of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Package {
    /// The plugin's name: the file's, without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it says about itself, where it says something.
    pub manifest: Option<Arc<Manifest>>,
    /// Whether it can be used.
    pub status: PackageStatus,
    /// Why it told no tools when it was asked last.
    pub(super) discovery_failure: Option<Arc<Error>>,
}

/// Whether a package can be used.
#[derive(Clone)]
pub enum PackageStatus {
    /// Its component is checked, and compiles when it is first called.
    Ready(Arc<Plugin>),
    /// It cannot be used, and harms no other.
    Broken(Error),
}

impl Package {
    /// Returns the plugin of a package that can be used.
    #[must_use]
    pub fn plugin(&self) -> Option<&Arc<Plugin>> {
        match &self.status {
            PackageStatus::Ready(plugin) => Some(plugin),
            PackageStatus::Broken(_) => None,
        }
    }

    /// Returns why a package cannot be used.
    #[must_use]
    pub fn reason(&self) -> Option<&Error> {
        match &self.status {
            PackageStatus::Ready(_) => None,
            PackageStatus::Broken(error) => Some(error),
        }
    }

    /// Returns how much it says about itself.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.manifest.as_deref().map(Manifest::tier).unwrap_or_default()
    }

    pub(super) fn broken(path: &Path, error: Error) -> Self {
        let name =
            name_of(path).unwrap_or_else(|_| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        Self {
            name: name.clone(),
            path: path.to_owned(),
            manifest: None,
            status: PackageStatus::Broken(error.with_plugin(name)),
            discovery_failure: None,
        }
    }
}

/// Takes a plugin's name from its file: letters, digits, `-`, `_` and `.`, since it is part of ids, grants and commands.
pub(super) fn name_of(path: &Path) -> Result<String, Error> {
    const BYTES_MAX: usize = 64;
    let refused = |why: &str| {
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            format!("its file name {why}"),
        )
        .with_suggestion("rename it with letters, digits, `-`, `_` and `.`")
    };
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_str()
        .ok_or_else(|| refused("is no valid Unicode"))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if stem.is_empty() || !stem.chars().all(fits) {
        return Err(refused("holds characters that cannot be part of a plugin's name"));
    }
    if RESERVED.contains(&identity_of(stem).as_str()) {
        return Err(refused("is reserved: tools of the host itself have ids that begin so"));
    }
    if stem.len() > BYTES_MAX {
        return Err(refused("is longer than 64 bytes"));
    }
    Ok(stem.to_owned())
}

/// What two names have in common when they are one to a model.
pub(super) fn identity_of(name: &str) -> String {
    snake_case(name)
}
