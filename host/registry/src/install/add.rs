//! Copying packages into a plugin directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::write::write_atomically;
use super::{FILE_EXTENSIONS, MANIFEST_EXTENSION, WIT_EXTENSION};
use crate::package::{EXTENSION, Package, has_same_identity};
use crate::registry::Registry;
use toolwit_core::limits::{EngineLimits, MANIFEST_BYTES_MAX, WIT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::{CodeCacheLocation, Runtime, RuntimeOptions, read_component};

/// The behaviour of [`add_packages`] if the directory already has a package with the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameConflict {
    /// Fails with [`AddError::NameTaken`].
    #[default]
    Refuse,
    /// Replaces the earlier package.
    Replace,
}

/// A package that [`add_packages`] copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPackage {
    /// The plugin's name.
    pub name: String,
    /// The component's new path.
    pub path: PathBuf,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The version in its manifest.
    pub version: Option<String>,
    /// Whether it replaced an earlier package.
    pub is_replacement: bool,
    /// The number of tools in its WIT.
    pub tool_count: usize,
    /// Whether it has dynamic tools that have not been discovered; see
    /// [`LiveRegistry::discover_dynamic_tools`](crate::LiveRegistry::discover_dynamic_tools).
    pub has_undiscovered_tools: bool,
    /// Why the WIT file that was copied with it does not describe it.
    pub wit_problem: Option<String>,
    /// Whether it declares capabilities that need a grant.
    pub needs_grants: bool,
}

/// An error of [`add_packages`].
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The source contains no component.
    #[error("there is no component in {}", .0.display())]
    NoComponent(PathBuf),
    /// The directory already has a package of this name.
    #[error("there is a package `{name}` already, in {}", path.display())]
    NameTaken {
        /// The earlier package's name.
        name: String,
        /// The earlier package's component.
        path: PathBuf,
    },
    /// A package of the source is broken, or a file could not be read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Self {
        let message = error.to_string();
        let suggestion = match error {
            AddError::Failed(error) => return error,
            AddError::NoComponent(_) => "name a component file or a directory of packages",
            AddError::NameTaken { .. } => "replace it with `NameConflict::Replace`",
        };
        Self::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion)
    }
}

/// Copies the packages of `source`, a component file or a directory, into a plugin directory. Creates the directory.
///
/// Every component is inspected first; if one is broken, nothing is copied. The manifest and the WIT file next to a component
/// are copied with it, unless one is a link out of their directory or too large to be read, which is an error. Nothing is compiled
/// and no guest code runs.
///
/// # Errors
/// See [`AddError`].
pub async fn add_packages(
    source: &Path,
    directory: &Path,
    conflict: NameConflict,
) -> Result<Vec<AddedPackage>, AddError> {
    let runtime = Runtime::new(RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    })?;
    let new = Registry::scan(&runtime, &[source.to_owned()]).await?;
    let existing = if directory.is_dir() {
        Some(Registry::scan(&runtime, &[directory.to_owned()]).await?)
    } else {
        None
    };
    if new.packages().is_empty() {
        return Err(AddError::NoComponent(source.to_owned()));
    }
    if let Some(reason) = new.packages().iter().find_map(Package::reason) {
        return Err(AddError::Failed(reason.clone()));
    }
    let packages = new.packages().iter();
    let with_earlier = packages.map(|package| (package, existing.as_ref().and_then(|there| earlier(there, package))));
    let with_earlier: Vec<_> = with_earlier.collect();
    let mut taken = with_earlier.iter().filter_map(|(_, earlier)| *earlier);
    if let Some(earlier) = taken.next().filter(|_| conflict == NameConflict::Refuse) {
        return Err(AddError::NameTaken {
            name: earlier.name.clone(),
            path: earlier.path.clone(),
        });
    }
    let added = with_earlier
        .into_iter()
        .map(|(package, earlier)| copy(package, earlier, directory));
    Ok(added.collect::<Result<_, _>>()?)
}

/// Finds the existing package whose name has the same form in tool names.
fn earlier<'a>(existing: &'a Registry, package: &Package) -> Option<&'a Package> {
    let mut packages = existing.packages().iter();
    packages.find(|other| has_same_identity(&other.name, &package.name))
}

/// Copies the files of a package, each atomically, and deletes files that only its earlier version had.
fn copy(package: &Package, earlier: Option<&Package>, directory: &Path) -> Result<AddedPackage, Error> {
    let target = match earlier {
        Some(earlier) => earlier.path.clone(),
        None => directory.join(&package.name).with_added_extension(EXTENSION),
    };
    copy_files(&package.path, &target, directory).map_err(|error| error.with_plugin(&*package.name))?;
    let plugin = package.plugin();
    Ok(AddedPackage {
        name: package.name.clone(),
        path: target,
        digest: plugin.map(|plugin| plugin.digest().to_owned()).unwrap_or_default(),
        version: package.manifest.as_ref().and_then(|manifest| manifest.version.clone()),
        is_replacement: earlier.is_some(),
        tool_count: plugin.map_or(0, |plugin| plugin.tool_count()),
        has_undiscovered_tools: package.discovery_error().is_some(),
        wit_problem: plugin.and_then(|plugin| plugin.inspection().wit_problem.clone()),
        needs_grants: plugin.is_some_and(|plugin| !plugin.declared().capabilities().is_empty()),
    })
}

fn copy_files(source: &Path, target: &Path, directory: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| {
        let message = format!("{} could not be written: {error}", target.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    };
    fs::create_dir_all(directory).map_err(failed)?;
    for extension in FILE_EXTENSIONS {
        let (from, to) = (source.with_extension(extension), target.with_extension(extension));
        if is_same_file(&from, &to) {
            continue;
        }
        if from.is_file() {
            let bytes = read_component(&from, bytes_max(extension)).map_err(|error| {
                let message = format!("{} cannot be copied: {}", from.display(), error.message);
                Error::new(error.kind, Phase::Registry, message).with_source(error)
            })?;
            write_atomically(&to, &bytes).map_err(failed)?;
        } else if to.is_file() {
            fs::remove_file(&to).map_err(failed)?;
        }
    }
    Ok(())
}

/// Returns the size up to which a host reads a file of a package.
fn bytes_max(extension: &str) -> u64 {
    match extension {
        MANIFEST_EXTENSION => MANIFEST_BYTES_MAX,
        WIT_EXTENSION => WIT_BYTES_MAX,
        _ => EngineLimits::default().component_bytes_max,
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    canonical(one).is_some_and(|one| Some(one) == canonical(other))
}
