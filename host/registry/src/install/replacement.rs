//! The package that an added package replaces.

use std::io;
use std::path::Path;

use semver::Version;

use super::add_error::AddError;
use super::installation::{NameConflict, NewPackage};
use super::installed_versions::InstalledVersions;
use crate::package::{Package, has_same_snake_case_form};
use crate::registry::Registry;
use toolwit_core::{Error, ErrorKind, Phase};

/// Finds the existing package that `package` would replace: the package whose name has the same snake-case form.
pub(super) fn find_earlier<'a>(existing: &'a Registry, package: &Package) -> Option<&'a Package> {
    let mut packages = existing.packages().iter();
    packages.find(|other| has_same_snake_case_form(&other.name, &package.name))
}

/// Checks that a package may replace the earlier package with the same name in a plugin directory.
///
/// # Errors
/// [`AddError::NameTaken`], [`AddError::Downgrade`], and [`AddError::Failed`] if the record of versions cannot be read.
pub(super) fn check_replacement(
    new: &NewPackage,
    earlier: &Package,
    conflict: NameConflict,
    directory: &Path,
) -> Result<(), AddError> {
    if conflict == NameConflict::Refuse {
        return Err(AddError::NameTaken {
            name: earlier.name.clone(),
            path: earlier.path.clone(),
        });
    }
    let Some((newest, requirement)) = &new.release else {
        return Ok(());
    };
    let Some(installed) = installed_version(earlier, directory)? else {
        return Ok(());
    };
    // An index that lists only old versions must not replace a newer package unnoticed, unless the query asks for an older version.
    let accepts_installed = requirement
        .as_ref()
        .is_none_or(|requirement| requirement.matches(&installed));
    if *newest < installed && accepts_installed {
        return Err(AddError::Downgrade {
            name: new.package.name.clone(),
            installed: installed.to_string(),
            newest: newest.to_string(),
        });
    }
    Ok(())
}

/// Returns the version of an installed package: that of its manifest, or that of the index from which it was downloaded.
fn installed_version(package: &Package, directory: &Path) -> Result<Option<Version>, Error> {
    let declared = package
        .manifest
        .as_ref()
        .and_then(|manifest| manifest.version.as_deref());
    if let Some(version) = declared.and_then(|version| Version::parse(version).ok()) {
        return Ok(Some(version));
    }
    let Some(plugin) = package.plugin() else {
        return Ok(None);
    };
    let version = InstalledVersions::of_directory(directory).version_of(plugin.digest());
    version.map_err(|error| versions_error(&error))
}

/// Returns the error for a record of versions that cannot be read or written.
pub(super) fn versions_error(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, Phase::Registry, error.to_string())
        .with_suggestion("delete this file to allow older versions")
}
