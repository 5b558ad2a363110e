//! Writing the files of an added package.

use std::fs;
use std::io;
use std::path::Path;

use super::installation::{NewFiles, NewPackage};
use super::remote_file::FileDigest;
use super::{FILE_EXTENSIONS, MANIFEST_EXTENSION, WIT_EXTENSION};
use crate::package::{EXTENSION, Package};
use crate::requested::{CAPABILITIES_EXTENSION, POLICY_EXTENSION};
use crate::scan::{PackageContent, inspect_content};
use toolwit_core::file::StagedFile;
use toolwit_core::limits::{EngineLimits, MANIFEST_BYTES_MAX, REQUESTS_BYTES_MAX, WIT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::{read_component, read_package_file};

/// The change to one file of an added package.
enum FileChange {
    /// The file gets this content.
    Write(Vec<u8>),
    /// The file is both source and target, and stays unchanged. The value is its content.
    Keep(Vec<u8>),
    /// The new package does not have the file. The file of an earlier version is deleted, if it exists.
    Delete,
}

impl FileChange {
    fn content(&self) -> Option<&[u8]> {
        match self {
            Self::Write(bytes) | Self::Keep(bytes) => Some(bytes),
            Self::Delete => None,
        }
    }
}

/// Writes the files of a package, each atomically, and deletes files that only its earlier version had.
///
/// All files are read and checked first, and their new content is on the disk before the first file is replaced. The
/// component is replaced last, and obsolete files are deleted after it.
///
/// # Errors
/// If a file cannot be read, or if the package has changed since it was inspected: then no file is written or deleted.
/// Also if a file cannot be written or deleted.
pub(super) fn write_files(new_package: &NewPackage, target: &Path, directory: &Path) -> Result<(), Error> {
    let changes: Vec<_> = FILE_EXTENSIONS
        .into_iter()
        .map(|extension| Ok((extension, plan_change(new_package, target, extension)?)))
        .collect::<Result<_, Error>>()?;
    check_unchanged(&changes, &new_package.package)?;
    apply_changes(&changes, target, directory).map_err(|error| {
        let message = format!("the files of {} could not be replaced: {error}", target.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}

/// Reads the source file with this extension, and returns the change to the target file with this extension.
fn plan_change(new_package: &NewPackage, target: &Path, extension: &str) -> Result<FileChange, Error> {
    let source = new_package.package.path.with_extension(extension);
    match &new_package.files {
        NewFiles::Downloaded { component, .. } if extension == EXTENSION => Ok(FileChange::Write(component.clone())),
        NewFiles::OnDisk if source.exists() => {
            let read = if extension == EXTENSION {
                read_component
            } else {
                read_package_file
            };
            let bytes = read(&source, bytes_max(extension)).map_err(|error| {
                let message = format!("{} cannot be copied: {}", source.display(), error.message);
                Error::new(error.kind, Phase::Registry, message).with_source(error)
            })?;
            if is_same_file(&source, &target.with_extension(extension)) {
                Ok(FileChange::Keep(bytes))
            } else {
                Ok(FileChange::Write(bytes))
            }
        }
        _ => Ok(FileChange::Delete),
    }
}

/// Writes the new content to temporary files, then moves these to their final paths, and then deletes the obsolete
/// files.
fn apply_changes(changes: &[(&str, FileChange)], target: &Path, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut staged = Vec::new();
    let mut obsolete = Vec::new();
    for (extension, change) in changes {
        let file = target.with_extension(extension);
        match change {
            FileChange::Write(bytes) => staged.push(StagedFile::write(&file, bytes)?),
            FileChange::Keep(_) => {}
            FileChange::Delete if file.is_file() => obsolete.push(file),
            FileChange::Delete => {}
        }
    }
    for file in staged {
        file.commit()?;
    }
    for file in obsolete {
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Checks that the package has not changed since it was inspected: its component has the same digest, and a new inspection has the
/// same result.
fn check_unchanged(changes: &[(&str, FileChange)], package: &Package) -> Result<(), Error> {
    let changed_error = || {
        let message = format!("{} changed after it was inspected", package.path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_suggestion("add it again")
    };
    let content_of = |extension: &str| {
        let (_, change) = changes
            .iter()
            .find(|(file_extension, _)| *file_extension == extension)?;
        change.content()
    };
    let plugin = package.plugin().ok_or_else(changed_error)?;
    let component = content_of(EXTENSION).ok_or_else(changed_error)?;
    if plugin.digest() != FileDigest::of(component).to_string() {
        return Err(changed_error());
    }
    let manifest_file = package.path.with_extension(MANIFEST_EXTENSION);
    let manifest_name = manifest_file.file_name().unwrap_or_default().to_string_lossy();
    let content = PackageContent {
        component,
        manifest: content_of(MANIFEST_EXTENSION).map(|text| (text, &*manifest_name)),
        wit: content_of(WIT_EXTENSION),
    };
    let (inspection, manifest) =
        inspect_content(&package.name, &content).map_err(|error| changed_error().with_source(error))?;
    let is_unchanged = manifest.as_ref() == package.manifest.as_deref()
        && inspection.to_cache_text() == plugin.inspection().to_cache_text();
    if is_unchanged { Ok(()) } else { Err(changed_error()) }
}

/// Returns the maximum size of a package's file with this extension, in bytes.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use toolwit_sandbox::{CodeCacheLocation, Runtime, RuntimeOptions};

    fn component(result: u8) -> Vec<u8> {
        let text = format!(
            r#"(component
                (core module $m (func (export "f") (result i32) i32.const {result}))
                (core instance $i (instantiate $m))
                (func (export "f") (result s32) (canon lift (core func $i "f"))))"#
        );
        wat::parse_str(text).unwrap()
    }

    /// A package that was inspected and is not installed, and an installed package of the same name. Each has a
    /// component, a manifest and a WIT file. The installed package also has a policy file.
    struct Setup {
        source: tempfile::TempDir,
        installed: tempfile::TempDir,
        new_package: NewPackage,
    }

    impl Setup {
        async fn new() -> Self {
            let (source, installed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            for (directory, result, version) in [(&source, 1, "2.0.0"), (&installed, 2, "1.0.0")] {
                let file = |extension: &str| directory.path().join("calc").with_extension(extension);
                fs::write(file("wasm"), component(result)).unwrap();
                fs::write(file("toml"), format!("version = \"{version}\"")).unwrap();
                fs::write(file("wit"), wit(version)).unwrap();
            }
            fs::write(installed.path().join("calc.policy.yaml"), "version: \"1.0\"").unwrap();
            let runtime = Runtime::new(RuntimeOptions {
                code_cache: CodeCacheLocation::Off,
                ..RuntimeOptions::default()
            });
            let registry = Registry::scan(&runtime.unwrap(), &[source.path().to_owned()]).await;
            let package = registry.unwrap().packages()[0].clone();
            Self {
                source,
                installed,
                new_package: NewPackage::on_disk(package),
            }
        }

        /// Installs the package. Returns the outcome, and whether a file of the installed package has changed.
        fn install(&self) -> (Result<(), Error>, bool) {
            let before = files(self.installed.path());
            let target = self.installed.path().join("calc.wasm");
            let outcome = write_files(&self.new_package, &target, self.installed.path());
            (outcome, files(self.installed.path()) != before)
        }
    }

    fn wit(version: &str) -> String {
        format!(
            "package demo:calc@{version};\n\nworld calc {{\n  /// Returns a number.\n  export f: func() -> s32;\n}}\n"
        )
    }

    fn files(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }

    #[tokio::test]
    async fn an_unchanged_package_replaces_all_files_of_the_installed_one() {
        let setup = Setup::new().await;
        setup.install().0.unwrap();
        let content = |directory: &Path| files(directory).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
        assert_eq!(content(setup.installed.path()), content(setup.source.path()));
        // The same package can be installed again.
        let target = setup.installed.path().join("calc.wasm");
        write_files(&setup.new_package, &target, setup.installed.path()).unwrap();
    }

    // attack: L16
    #[tokio::test]
    async fn a_file_that_changed_after_the_inspection_leaves_the_installed_package_unchanged() {
        let changes: [(&str, &[u8]); 3] = [
            ("calc.wasm", &component(3)),
            ("calc.toml", b"version = \"2.0.0\"\n[limits]\nwall = \"1h\""),
            (
                "calc.wit",
                b"package demo:calc@2.0.0;\n\nworld calc {\n  /// Deletes nothing.\n  export f: func() -> s32;\n}\n",
            ),
        ];
        for (name, content) in changes {
            let setup = Setup::new().await;
            fs::write(setup.source.path().join(name), content).unwrap();
            let (outcome, has_changed) = setup.install();
            let error = outcome.unwrap_err();
            assert!(
                error.message.contains("changed after it was inspected"),
                "{name}: {error}"
            );
            assert!(!has_changed, "{name}");
        }
        for name in ["calc.wasm", "calc.toml", "calc.wit"] {
            let setup = Setup::new().await;
            fs::remove_file(setup.source.path().join(name)).unwrap();
            let (outcome, has_changed) = setup.install();
            assert!(outcome.is_err() && !has_changed, "{name} was removed");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_failed_write_leaves_the_installed_package_unchanged() {
        let setup = Setup::new().await;
        // A directory at the path of the component's temporary file makes the write fail.
        let blocked = format!(".calc.wasm.{}.new", std::process::id());
        fs::create_dir(setup.installed.path().join(&blocked)).unwrap();
        let content_of = |name: &str| fs::read(setup.installed.path().join(name)).unwrap();
        let earlier_content = ["calc.wasm", "calc.toml", "calc.wit", "calc.policy.yaml"].map(content_of);
        let target = setup.installed.path().join("calc.wasm");
        write_files(&setup.new_package, &target, setup.installed.path()).unwrap_err();
        assert_eq!(
            ["calc.wasm", "calc.toml", "calc.wit", "calc.policy.yaml"].map(content_of),
            earlier_content
        );
        assert_eq!(
            fs::read_dir(setup.installed.path()).unwrap().count(),
            5,
            "the four files and the directory, but no temporary file"
        );
    }
}
