//! Looking through plugin directories. Nothing is compiled and no guest code runs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;

use super::package::{EXTENSION, Package, PackageStatus, identity_of, name_of};
use crate::error::{Error, ErrorKind, Phase};
use crate::plugin::{Plugin, Runtime};

/// The packages of one or more plugin directories.
#[derive(Clone, Default)]
pub struct Registry {
    packages: Vec<Package>,
}

impl Registry {
    /// Reads every component of the given directories, and single component files, several at a time.
    ///
    /// A package that is broken is listed with its reason, and so are both of two that claim one name. Hidden files and
    /// files that are no `.wasm` are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a directory cannot be read.
    pub async fn scan(runtime: &Arc<Runtime>, places: &[PathBuf]) -> Result<Self, Error> {
        let of_task = places.to_vec();
        let listed = tokio::task::spawn_blocking(move || list(&of_task))
            .await
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    Phase::Registry,
                    "listing the plugins failed unexpectedly",
                )
                .with_source(error)
            })??;
        let parallel = std::thread::available_parallelism().map_or(2, usize::from);
        let mut packages: Vec<_> = futures::stream::iter(listed)
            .map(|file| read(runtime, file))
            .buffered(parallel)
            .collect()
            .await;
        refuse_shared_names(&mut packages);
        Ok(Self { packages })
    }

    /// Returns the packages, by name.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Returns the plugins that can be used, by name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.packages.iter().filter_map(Package::plugin)
    }
}

/// A component file, or why it is none.
struct Listed {
    path: PathBuf,
    refused: Option<Error>,
}

/// Lists the component files of directories, by path.
fn list(places: &[PathBuf]) -> Result<Vec<Listed>, Error> {
    let mut files = Vec::new();
    for place in places {
        let unreadable = |error: std::io::Error| {
            Error::new(
                ErrorKind::Io,
                Phase::Registry,
                format!("{} could not be read: {error}", place.display()),
            )
            .with_suggestion("name a directory of plugins, or a `.wasm` file")
            .with_source(error)
        };
        if !fs::metadata(place).map_err(unreadable)?.is_dir() {
            files.push(Listed {
                path: place.clone(),
                refused: None,
            });
            continue;
        }
        let root = fs::canonicalize(place).map_err(unreadable)?;
        for entry in fs::read_dir(place).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let is_hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !is_hidden && path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push(Listed {
                    refused: leads_out(&root, &path),
                    path,
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// Refuses a link whose target lies outside the plugin directory.
fn leads_out(root: &Path, path: &Path) -> Option<Error> {
    let broken = |message: String| Some(Error::new(ErrorKind::Io, Phase::Registry, message));
    match fs::canonicalize(path) {
        Ok(target) if target.starts_with(root) => None,
        Ok(_) => broken("it is a link that leads out of the plugin directory".to_owned()),
        Err(error) => broken(format!("it could not be read: {error}")),
    }
}

async fn read(runtime: &Arc<Runtime>, file: Listed) -> Package {
    let Listed { path, refused } = file;
    let name = match refused.map_or_else(|| name_of(&path), Err) {
        Ok(name) => name,
        Err(error) => return Package::broken(&path, error),
    };
    match Plugin::from_file(runtime, &name, path.clone()).await {
        Ok(plugin) => Package {
            name,
            path,
            status: PackageStatus::Ready(plugin),
        },
        Err(error) => Package::broken(&path, error),
    }
}

/// Refuses all packages that claim one name: nothing says which of them the operator means.
fn refuse_shared_names(packages: &mut [Package]) {
    packages.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    let mut claims: HashMap<String, Vec<PathBuf>> = HashMap::new();
    for package in packages.iter() {
        claims
            .entry(identity_of(&package.name))
            .or_default()
            .push(package.path.clone());
    }
    for package in packages.iter_mut() {
        let others: Vec<_> = claims
            .get(&identity_of(&package.name))
            .into_iter()
            .flatten()
            .filter(|path| **path != package.path)
            .map(|path| path.display().to_string())
            .collect();
        if !others.is_empty() {
            let message = format!("its name is also claimed by {}", others.join(", "));
            let error = Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("remove or rename one of them")
                .with_plugin(&*package.name);
            package.status = PackageStatus::Broken(error);
        }
    }
}
