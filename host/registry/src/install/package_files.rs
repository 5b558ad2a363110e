//! Writing the files of a package that is added.

use std::fs;
use std::io;
use std::path::Path;

use super::add::{NewFiles, NewPackage};
use super::remote_file::FileDigest;
use super::write::write_atomically;
use super::{FILE_EXTENSIONS, MANIFEST_EXTENSION, WIT_EXTENSION};
use crate::package::{EXTENSION, Package};
use crate::requested::{CAPABILITIES_EXTENSION, POLICY_EXTENSION};
use toolwit_core::limits::{EngineLimits, MANIFEST_BYTES_MAX, REQUESTS_BYTES_MAX, WIT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::read_component;

/// Writes the files of a package, each atomically, and deletes files that only its earlier version had.
pub(super) fn write_files(new: &NewPackage, target: &Path, directory: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| {
        let message = format!("{} could not be written: {error}", target.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    };
    fs::create_dir_all(directory).map_err(failed)?;
    for extension in FILE_EXTENSIONS {
        let (from, to) = (
            new.package.path.with_extension(extension),
            target.with_extension(extension),
        );
        match &new.files {
            NewFiles::Downloaded { component, .. } if extension == EXTENSION => {
                write_atomically(&to, component).map_err(failed)?;
            }
            NewFiles::OnDisk if is_same_file(&from, &to) => {}
            NewFiles::OnDisk if from.is_file() => {
                let bytes = read_component(&from, bytes_max(extension)).map_err(|error| {
                    let message = format!("{} cannot be copied: {}", from.display(), error.message);
                    Error::new(error.kind, Phase::Registry, message).with_source(error)
                })?;
                if extension == EXTENSION {
                    require_inspected(&bytes, &new.package)?;
                }
                write_atomically(&to, &bytes).map_err(failed)?;
            }
            _ if to.is_file() => fs::remove_file(&to).map_err(failed)?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the content of a component file is what was inspected.
fn require_inspected(component: &[u8], package: &Package) -> Result<(), Error> {
    let inspected = package.plugin().map(|plugin| plugin.digest());
    if inspected == Some(FileDigest::of(component).to_string().as_str()) {
        return Ok(());
    }
    let message = format!("{} changed after it was inspected", package.path.display());
    Err(Error::new(ErrorKind::Io, Phase::Registry, message).with_suggestion("add it again"))
}

/// Returns the size up to which a host reads a file of a package.
fn bytes_max(extension: &str) -> u64 {
    match extension {
        MANIFEST_EXTENSION => MANIFEST_BYTES_MAX,
        WIT_EXTENSION => WIT_BYTES_MAX,
        POLICY_EXTENSION | CAPABILITIES_EXTENSION => REQUESTS_BYTES_MAX,
        _ => EngineLimits::default().component_bytes_max,
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    canonical(one).is_some_and(|one| Some(one) == canonical(other))
}
