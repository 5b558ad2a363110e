//! Deleting packages from a plugin directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::FILE_EXTENSIONS;
use crate::live::LiveRegistry;
use crate::package::Package;
use crate::registry::Registry;
use toolwit_core::{Error, ErrorKind, Phase};

/// A package that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedPackage {
    /// The plugin's name.
    pub name: String,
    /// The deleted files, or only the deleted link to the package's folder.
    pub files: Vec<PathBuf>,
}

impl LiveRegistry {
    /// Deletes the files of a package and its metadata in the store. The package can be broken. If the package has its own
    /// folder and the folder is a symbolic link, only the link is deleted.
    ///
    /// Running calls finish. The plugin's grants and stored values are unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if no package has the name, or several do; [`ErrorKind::Io`] if a file cannot be
    /// deleted. Also those of [`LiveRegistry::refresh`], which runs after the files were deleted.
    pub async fn remove_package(&self, name: &str) -> Result<RemovedPackage, Error> {
        let registry = self.current();
        let package = only_package(&registry, name)?;
        let files = delete_files(package, self.paths())?;
        self.refresh().await?;
        Ok(RemovedPackage {
            name: package.name.clone(),
            files,
        })
    }
}

/// Returns the only package with the name.
///
/// # Errors
/// If there is no such package, or more than one.
fn only_package<'a>(registry: &'a Registry, name: &str) -> Result<&'a Package, Error> {
    let packages = registry.packages();
    let matching: Vec<_> = packages.iter().filter(|package| package.name == name).collect();
    let (message, suggestion) = match matching.as_slice() {
        [package] => return Ok(package),
        [] => {
            let names: Vec<_> = packages.iter().map(|package| format!("`{}`", package.name)).collect();
            let suggestion = if names.is_empty() {
                "the directory has no packages".to_owned()
            } else {
                format!("the packages are {}", names.join(", "))
            };
            (format!("there is no package `{name}`"), suggestion)
        }
        namesakes => {
            let paths: Vec<_> = namesakes
                .iter()
                .map(|package| package.path.display().to_string())
                .collect();
            (
                format!("{} packages are called `{name}`", namesakes.len()),
                format!("remove one of the files yourself: {}", paths.join(", ")),
            )
        }
    };
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion))
}

/// Deletes the files of a package and returns them. The component is deleted first, so that a partial deletion leaves
/// no package. `scanned_paths` are the paths that the registry scans.
fn delete_files(package: &Package, scanned_paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let deletion_error = |error: std::io::Error| {
        let message = format!("{} could not be removed: {error}", package.path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_plugin(&*package.name)
    };
    // A component has no folder of its own if it is directly in a scanned directory, or if it is a scanned path itself.
    let is_scanned = |path: &Path| scanned_paths.iter().any(|scanned| scanned == path);
    let folder = package.path.parent();
    let folder = folder.filter(|folder| !is_scanned(folder) && !is_scanned(&package.path));
    if let Some(link) = folder.filter(|folder| folder.is_symlink()) {
        fs::remove_file(link).map_err(deletion_error)?;
        return Ok(vec![link.to_owned()]);
    }
    let mut deleted = Vec::new();
    for extension in FILE_EXTENSIONS.iter().rev() {
        let file = package.path.with_extension(extension);
        // Deletes a symbolic link, not its target.
        if fs::symlink_metadata(&file).is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(&file).map_err(deletion_error)?;
            deleted.push(file);
        }
    }
    if deleted.is_empty() {
        let why = if package.path.is_dir() {
            "it is a directory"
        } else {
            "it does not exist any more"
        };
        return Err(deletion_error(std::io::Error::other(why)));
    }
    // Deletes the folder, unless it contains other files.
    if let Some(folder) = folder {
        let _ = fs::remove_dir(folder);
    }
    Ok(deleted)
}
