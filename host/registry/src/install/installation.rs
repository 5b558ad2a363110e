//! Adding packages to a plugin directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use semver::{Version, VersionReq};

use super::add_error::AddError;
use super::index::{PackageIndex, Release};
use super::installed_versions::InstalledVersions;
use super::package_files::write_files;
use super::remote_file::{Download, FileDigest, FileUrl, RemoteFile};
use super::replacement::{check_replacement, find_earlier, versions_error};
use super::source::{PackageQuery, PackageSource, check_remote_name};
use crate::package::{EXTENSION, Package};
use crate::registry::Registry;
use crate::scan::{blocking, downloaded_package};
use toolwit_core::limits::PACKAGE_INDEX_BYTES_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::{CodeCacheLocation, Runtime, RuntimeOptions};

/// The behaviour of an [`Installation`] if the directory already has a package with the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameConflict {
    /// Fails with [`AddError::NameTaken`].
    #[default]
    Refuse,
    /// Replaces the earlier package.
    Replace,
}

/// A package that an [`Installation`] added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPackage {
    /// The plugin's name.
    pub name: String,
    /// The component's new path.
    pub path: PathBuf,
    /// The URL from which the component was downloaded. `None` if the component was copied from this machine.
    pub url: Option<String>,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The version in its manifest, or else in the index.
    pub version: Option<String>,
    /// Whether it replaced an earlier package.
    pub is_replacement: bool,
    /// The number of tools in its WIT.
    pub tool_count: usize,
    /// Whether it has dynamic tools that have not been discovered; see
    /// [`LiveRegistry::discover_dynamic_tools`](crate::LiveRegistry::discover_dynamic_tools).
    pub has_undiscovered_tools: bool,
    /// The reason why the package's WIT file is not used. `None` if the file is used, or if the package has no WIT file.
    pub wit_problem: Option<String>,
    /// Whether it declares capabilities that need a grant.
    pub needs_grants: bool,
}

/// Adds packages to a plugin directory: from files, from a URL, or from an index.
///
/// Every component is inspected first; if one is broken, nothing is written. The manifest, the WIT file and the permission
/// files of other hosts next to a component file are copied with it. If one of them is too large to be read, or is a link out
/// of its directory, the installation fails. A downloaded package is one file, whose digest is checked before it is parsed or
/// written. Nothing is compiled and no guest code runs.
#[derive(Clone)]
pub struct Installation {
    directory: PathBuf,
    conflict: NameConflict,
    index: Option<RemoteFile>,
    downloader: Option<Arc<dyn Download>>,
}

/// A package to add, with the content of its files.
pub(super) struct NewPackage {
    pub(super) package: Package,
    pub(super) files: NewFiles,
    /// The version of the release in an index, with the requirement for the version in the query.
    pub(super) release: Option<(Version, Option<VersionReq>)>,
}

/// The files of a package to add.
pub(super) enum NewFiles {
    /// The files are on this machine: the component at the path of the package, and the others next to it.
    OnDisk,
    /// The component was downloaded. It is the only file of the package.
    Downloaded {
        url: FileUrl,
        component: Vec<u8>,
        /// The version in the index. `None` if the source is a URL.
        version: Option<Version>,
    },
}

impl NewPackage {
    /// Creates a package whose files are at its path.
    pub(super) fn on_disk(package: Package) -> Self {
        Self {
            package,
            files: NewFiles::OnDisk,
            release: None,
        }
    }
}

impl Installation {
    /// Creates an installation that adds packages to this directory. The directory is created if it does not exist.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            conflict: NameConflict::Refuse,
            index: None,
            downloader: None,
        }
    }

    /// Sets the behaviour if the directory already has a package with the same name.
    #[must_use]
    pub fn conflict(mut self, conflict: NameConflict) -> Self {
        self.conflict = conflict;
        self
    }

    /// Sets the index in which packages are looked up by name.
    #[must_use]
    pub fn index(mut self, index: RemoteFile) -> Self {
        self.index = Some(index);
        self
    }

    /// Sets the client that downloads packages and the index.
    #[must_use]
    pub fn downloader(mut self, downloader: Arc<dyn Download>) -> Self {
        self.downloader = Some(downloader);
        self
    }

    /// Adds the packages of a source.
    ///
    /// # Errors
    /// See [`AddError`].
    pub async fn run(&self, source: &PackageSource) -> Result<Vec<AddedPackage>, AddError> {
        let runtime = Runtime::new(RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        })?;
        let new_packages = match source {
            PackageSource::Path(path) => inspect_on_disk(&runtime, path).await?,
            PackageSource::Url(file) => vec![self.download_at_url(&runtime, file).await?],
            PackageSource::Index(query) => vec![self.download_from_index(&runtime, query).await?],
        };
        if let Some(reason) = new_packages.iter().find_map(|new| new.package.broken_reason()) {
            return Err(AddError::Failed(reason.clone()));
        }
        let existing = if self.directory.is_dir() {
            Some(Registry::scan(&runtime, std::slice::from_ref(&self.directory)).await?)
        } else {
            None
        };
        let with_earlier = new_packages.iter().map(|new| {
            (
                new,
                existing
                    .as_ref()
                    .and_then(|existing| find_earlier(existing, &new.package)),
            )
        });
        let with_earlier: Vec<_> = with_earlier.collect();
        for (new, earlier) in &with_earlier {
            if let Some(earlier) = earlier {
                check_replacement(new, earlier, self.conflict, &self.directory)?;
            }
        }
        let added = with_earlier
            .into_iter()
            .map(|(new, earlier)| write_package(new, earlier, &self.directory));
        Ok(added.collect::<Result<_, _>>()?)
    }

    /// Downloads the component at a URL. If the URL has no digest, returns an error that contains the digest of the content.
    async fn download_at_url(&self, runtime: &Arc<Runtime>, file: &RemoteFile) -> Result<NewPackage, AddError> {
        let name = file.url.plugin_name();
        check_remote_name(name)?;
        let bytes_max = runtime.engine_limits().component_bytes_max;
        let component = self.download(&file.url, file.digest.as_ref(), bytes_max).await?;
        if file.digest.is_none() {
            return Err(AddError::Unpinned {
                url: file.url.to_string(),
                digest: FileDigest::of(&component).to_string(),
                size_bytes: component.len() as u64,
            });
        }
        Ok(self
            .inspect_downloaded(runtime, name, &file.url, component, None)
            .await?)
    }

    /// Downloads the component of the newest release in the index that the query accepts.
    async fn download_from_index(&self, runtime: &Arc<Runtime>, query: &PackageQuery) -> Result<NewPackage, AddError> {
        let Some(index) = &self.index else {
            return Err(AddError::NoIndex(query.name.clone()));
        };
        let json = self
            .download(&index.url, index.digest.as_ref(), PACKAGE_INDEX_BYTES_MAX)
            .await?;
        let index = PackageIndex::parse(&json, &index.url)?;
        let Release {
            name,
            version,
            url,
            digest,
            size_bytes,
        } = index.newest(query)?;
        let bytes_max = runtime.engine_limits().component_bytes_max.min(*size_bytes);
        let component = self.download(url, Some(digest), bytes_max).await?;
        if component.len() as u64 != *size_bytes {
            return Err(AddError::WrongSize {
                url: url.to_string(),
                listed_bytes: *size_bytes,
                actual_bytes: component.len() as u64,
            });
        }
        let new = self
            .inspect_downloaded(runtime, name, url, component, Some(version))
            .await?;
        let declared = new
            .package
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.version.as_ref());
        if let Some(declared) = declared.filter(|declared| **declared != version.to_string()) {
            return Err(AddError::OtherVersion {
                name: name.clone(),
                listed: version.to_string(),
                declared: declared.clone(),
            });
        }
        Ok(NewPackage {
            release: Some((version.clone(), query.version.clone())),
            ..new
        })
    }

    /// Downloads a file, and checks its digest if `expected` is set.
    async fn download(
        &self,
        url: &FileUrl,
        expected: Option<&FileDigest>,
        bytes_max: u64,
    ) -> Result<Vec<u8>, AddError> {
        let Some(downloader) = &self.downloader else {
            let message = format!("`{url}` cannot be downloaded: this program has no downloader");
            let error = Error::new(ErrorKind::Configuration, Phase::Registry, message);
            return Err(error.with_suggestion("set one with `Installation::downloader`").into());
        };
        let content = downloader.download(url, bytes_max).await?;
        let actual = FileDigest::of(&content);
        match expected {
            Some(expected) if *expected != actual => Err(AddError::WrongDigest {
                url: url.to_string(),
                expected: expected.to_string(),
                actual: actual.to_string(),
            }),
            _ => Ok(content),
        }
    }

    /// Inspects a downloaded component, which will be written to the directory. `version` is its version in the index.
    async fn inspect_downloaded(
        &self,
        runtime: &Arc<Runtime>,
        name: &str,
        url: &FileUrl,
        component: Vec<u8>,
        version: Option<&Version>,
    ) -> Result<NewPackage, Error> {
        let path = self.directory.join(name).with_added_extension(EXTENSION);
        let (runtime, name) = (runtime.clone(), name.to_owned());
        let (package, component) =
            blocking(move || Ok((downloaded_package(&runtime, &name, path, &component), component))).await?;
        Ok(NewPackage {
            package,
            files: NewFiles::Downloaded {
                url: url.clone(),
                component,
                version: version.cloned(),
            },
            release: None,
        })
    }
}

/// Inspects the packages of a component file or a directory.
async fn inspect_on_disk(runtime: &Arc<Runtime>, path: &Path) -> Result<Vec<NewPackage>, AddError> {
    let registry = Registry::scan(runtime, &[path.to_owned()]).await?;
    let packages = registry.packages().iter().cloned().map(NewPackage::on_disk);
    let packages: Vec<_> = packages.collect();
    if packages.is_empty() {
        return Err(AddError::NoComponent(path.to_owned()));
    }
    Ok(packages)
}

/// Writes the files of a package, in place of the earlier package if there is one.
fn write_package(new: &NewPackage, earlier: Option<&Package>, directory: &Path) -> Result<AddedPackage, Error> {
    let package = &new.package;
    let target = match earlier {
        Some(earlier) => earlier.path.clone(),
        None => directory.join(&package.name).with_added_extension(EXTENSION),
    };
    let plugin = package.plugin();
    let declared = package.manifest.as_ref().and_then(|manifest| manifest.version.clone());
    if let (Some((version, _)), None, Some(plugin)) = (&new.release, &declared, plugin) {
        // Recorded first: a component of unknown version could be replaced by an older one.
        let recorded = InstalledVersions::of_directory(directory).record(plugin.digest(), version);
        recorded.map_err(|error| versions_error(&error))?;
    }
    write_files(new, &target, directory).map_err(|error| error.with_plugin(&*package.name))?;
    let (url, version) = match &new.files {
        NewFiles::OnDisk => (None, None),
        NewFiles::Downloaded { url, version, .. } => (Some(url.to_string()), version.as_ref()),
    };
    Ok(AddedPackage {
        name: package.name.clone(),
        path: target,
        url,
        digest: plugin.map(|plugin| plugin.digest().to_owned()).unwrap_or_default(),
        version: declared.or_else(|| version.map(ToString::to_string)),
        is_replacement: earlier.is_some(),
        tool_count: plugin.map_or(0, |plugin| plugin.tool_count()),
        has_undiscovered_tools: package.discovery_error().is_some(),
        wit_problem: plugin.and_then(|plugin| plugin.inspection().wit_problem.clone()),
        needs_grants: plugin.is_some_and(|plugin| !plugin.declared_capabilities().capabilities().is_empty()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    // attack: L16
    #[tokio::test]
    async fn a_component_that_changes_before_it_is_copied_is_not_installed() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let component = |export: &str| {
            let text = format!(
                r#"(component
                    (core module $m (func (export "f")))
                    (core instance $i (instantiate $m))
                    (func (export "{export}") (canon lift (core func $i "f"))))"#
            );
            wat::parse_str(text).unwrap()
        };
        let file = source.path().join("calc.wasm");
        fs::write(&file, component("add")).unwrap();
        let runtime = Runtime::new(RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        });
        let new = inspect_on_disk(&runtime.unwrap(), &file).await.unwrap().remove(0);
        fs::write(&file, component("other")).unwrap();
        let error = write_package(&new, None, target.path()).unwrap_err();
        assert!(
            error.message.ends_with("calc.wasm changed after it was inspected"),
            "{error}"
        );
        assert!(!target.path().join("calc.wasm").exists());
        fs::write(&file, component("add")).unwrap();
        assert_eq!(write_package(&new, None, target.path()).unwrap().name, "calc");
    }
}
