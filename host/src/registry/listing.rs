//! Which component files there are.

use std::fs;
use std::path::{Path, PathBuf};

use super::package::EXTENSION;
use crate::error::{Error, ErrorKind, Phase};

/// A component file, or why it is none.
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) refused: Option<Error>,
}

/// What it means that a place is not there at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// Its name is wrong: an error.
    #[default]
    Error,
    /// It has no packages yet.
    Empty,
}

/// Lists the component files of directories, by path.
pub(super) fn list(places: &[PathBuf], absent: Absent) -> Result<Vec<Listed>, Error> {
    let mut files = Vec::new();
    for place in places {
        if absent == Absent::Empty && !place.exists() {
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
                path: place.clone(),
                refused: None,
            });
            continue;
        }
        let root = fs::canonicalize(place).map_err(unreadable)?;
        for entry in fs::read_dir(place).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
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
                files.push(Listed {
                    refused: leads_out(&root, &path).or_else(|| beside_leads_out(&root, &path)),
                    path,
                });
            } else if !is_hidden && path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push(Listed {
                    refused: (!is_plain)
                        .then(|| leads_out(&root, &path))
                        .flatten()
                        .or_else(|| beside_leads_out(&root, &path)),
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

/// Refuses a component beside which a link leads out: its manifest and its WIT are read and shown.
fn beside_leads_out(root: &Path, component: &Path) -> Option<Error> {
    let beside = ["toml", "wit"].map(|extension| component.with_extension(extension));
    beside
        .iter()
        .filter(|path| path.is_symlink())
        .find_map(|path| leads_out(root, path))
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
