//! Which component files there are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use super::package::EXTENSION;
use toolwit_core::{Error, ErrorKind, Phase};

/// A component file, or why it is none.
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) refused: Option<Error>,
    pub(super) beside: Beside,
}

/// What lies beside a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) manifest: bool,
    pub(super) wit: bool,
}

/// What a manifest ends with, and a text of WIT.
pub(super) const BESIDE: [&str; 2] = ["toml", "wit"];

/// What it means that a place is not there at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingPath {
    /// Its name is wrong: an error.
    #[default]
    Error,
    /// It has no packages yet.
    Empty,
}

/// Lists the component files of directories, by path.
pub(super) fn list(places: &[PathBuf], absent: MissingPath) -> Result<Vec<Listed>, Error> {
    let mut files = Vec::new();
    for place in places {
        if absent == MissingPath::Empty && !place.exists() {
            continue;
        }
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
                beside: Beside::look(place),
                path: place.clone(),
                refused: None,
            });
            continue;
        }
        let root = fs::canonicalize(place).map_err(unreadable)?;
        let entries: Vec<_> = fs::read_dir(place).and_then(Iterator::collect).map_err(unreadable)?;
        let kinds: Kinds = entries
            .iter()
            .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
            .collect();
        for entry in entries {
            let path = entry.path();
            // Most entries are plain files: what the directory itself says of them saves several questions each.
            let is_plain = entry.file_type().is_ok_and(|kind| kind.is_file());
            let is_hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let folder = if is_plain || is_hidden {
                None
            } else {
                folder_package(&path)
            };
            if let Some(path) = folder {
                let beside = Beside::look(&path);
                let links = BESIDE.map(|extension| path.with_extension(extension));
                let links = links.iter().filter(|path| path.is_symlink());
                files.push(Listed {
                    refused: leads_out(&root, &path).or_else(|| first_that_leads_out(&root, links)),
                    path,
                    beside,
                });
            } else if !is_hidden && path.extension().is_some_and(|extension| extension == EXTENSION) {
                let near = BESIDE.map(|extension| path.with_extension(extension));
                let kind = |path: &PathBuf| kinds.get(path.file_name()?);
                let links = near.iter().filter(|path| kind(path).is_some_and(FileType::is_symlink));
                files.push(Listed {
                    refused: (!is_plain)
                        .then(|| leads_out(&root, &path))
                        .flatten()
                        .or_else(|| first_that_leads_out(&root, links)),
                    beside: Beside {
                        manifest: kind(&near[0]).is_some(),
                        wit: kind(&near[1]).is_some(),
                    },
                    path,
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// Finds the component of a package in a folder of its own: `weather/weather.wasm`.
fn folder_package(path: &Path) -> Option<PathBuf> {
    let mut file = path.file_name()?.to_owned();
    file.push(".");
    file.push(EXTENSION);
    let component = path.join(file);
    (path.is_dir() && component.exists()).then_some(component)
}

/// What the entries of a directory are, as the directory says.
type Kinds = HashMap<OsString, FileType>;

impl Beside {
    /// Asks the file system.
    fn look(component: &Path) -> Self {
        let [manifest, wit] = BESIDE.map(|extension| component.with_extension(extension).exists());
        Self { manifest, wit }
    }
}

/// Refuses a component beside which a link leads out: its manifest and its WIT are read and shown.
fn first_that_leads_out<'p>(root: &Path, mut links: impl Iterator<Item = &'p PathBuf>) -> Option<Error> {
    links.find_map(|path| leads_out(root, path))
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
