//! Listing component files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, DirEntry, FileType};
use std::path::{Path, PathBuf};

use crate::package::EXTENSION;
use crate::requested::{CAPABILITIES_EXTENSION, POLICY_EXTENSION};
use toolwit_core::{Error, ErrorKind, Phase};

/// A component file of a plugin directory.
pub(super) struct ComponentFile {
    pub(super) path: PathBuf,
    /// The error if the package must not be read; see [`link_refusal`].
    pub(super) refusal: Option<Error>,
    pub(super) sidecars: Sidecars,
}

/// Whether a manifest and a WIT file exist next to a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sidecars {
    pub(super) has_manifest: bool,
    pub(super) has_wit: bool,
}

/// The extensions of the sidecars: a manifest and a WIT file.
pub(super) const SIDECAR_EXTENSIONS: [&str; 2] = ["toml", "wit"];

/// The extensions of all files that are read next to a component. The extensions of the sidecars are first.
const NEIGHBOUR_EXTENSIONS: [&str; 4] = ["toml", "wit", POLICY_EXTENSION, CAPABILITIES_EXTENSION];

/// The treatment of a path that does not exist at the first scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingPath {
    /// The scan fails, because the path is probably wrong.
    #[default]
    Error,
    /// The path counts as a directory without packages, because it may be created later.
    Empty,
}

/// Lists the component files among `paths` and in the directories among `paths`, sorted by path.
pub(super) fn list(paths: &[PathBuf], missing: MissingPath) -> Result<Vec<ComponentFile>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if missing == MissingPath::Empty && !path.exists() {
            continue;
        }
        list_path(path, &mut files).map_err(|error| {
            let message = format!("{} could not be read: {error}", path.display());
            Error::new(ErrorKind::Io, Phase::Registry, message)
                .with_suggestion("name a directory of plugins, or a `.wasm` file")
                .with_source(error)
        })?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// Adds the component file at `path`, or the component files in the directory at `path`, to `files`.
fn list_path(path: &Path, files: &mut Vec<ComponentFile>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let root = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
        let neighbours = NEIGHBOUR_EXTENSIONS.map(|extension| path.with_extension(extension));
        files.push(ComponentFile {
            // The component itself may be a link, because the caller named this file explicitly.
            refusal: first_link_refusal(&root, neighbours.iter().filter(|path| path.is_symlink())),
            sidecars: Sidecars::of(path),
            path: path.to_owned(),
        });
        return Ok(());
    }
    let root = fs::canonicalize(path)?;
    let entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    let types: FileTypes = entries
        .iter()
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
        .collect();
    files.extend(entries.iter().filter_map(|entry| component_of(&root, entry, &types)));
    Ok(())
}

/// The types of a directory's entries, as the directory reports them.
type FileTypes = HashMap<OsString, FileType>;

/// Returns the component of a directory entry: the entry itself, or, if the entry is a package folder, the component in
/// it. `None` if the entry is hidden or has no component.
fn component_of(root: &Path, entry: &DirEntry, types: &FileTypes) -> Option<ComponentFile> {
    let path = entry.path();
    let is_hidden = path.file_name()?.as_encoded_bytes().starts_with(b".");
    if is_hidden {
        return None;
    }
    // Most entries are regular files. The directory reports their type, which saves several system calls for each file.
    let is_regular = entry.file_type().is_ok_and(|file_type| file_type.is_file());
    if let Some(path) = (!is_regular).then(|| folder_component(&path)).flatten() {
        let neighbours = NEIGHBOUR_EXTENSIONS.map(|extension| path.with_extension(extension));
        let links = neighbours.iter().filter(|path| path.is_symlink());
        return Some(ComponentFile {
            refusal: link_refusal(root, &path).or_else(|| first_link_refusal(root, links)),
            sidecars: Sidecars::of(&path),
            path,
        });
    }
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return None;
    }
    let neighbours = NEIGHBOUR_EXTENSIONS.map(|extension| path.with_extension(extension));
    let reported_type = |path: &PathBuf| types.get(path.file_name()?);
    let links = neighbours
        .iter()
        .filter(|path| reported_type(path).is_some_and(FileType::is_symlink));
    let refusal = if is_regular { None } else { link_refusal(root, &path) };
    Some(ComponentFile {
        refusal: refusal.or_else(|| first_link_refusal(root, links)),
        sidecars: Sidecars {
            has_manifest: reported_type(&neighbours[0]).is_some(),
            has_wit: reported_type(&neighbours[1]).is_some(),
        },
        path,
    })
}

/// Returns the component in a package folder: `weather/weather.wasm` in the folder `weather`. `None` if the path is not a
/// package folder.
fn folder_component(folder: &Path) -> Option<PathBuf> {
    let mut file = folder.file_name()?.to_owned();
    file.push(".");
    file.push(EXTENSION);
    let component = folder.join(file);
    (folder.is_dir() && component.exists()).then_some(component)
}

impl Sidecars {
    fn of(component: &Path) -> Self {
        let [has_manifest, has_wit] = SIDECAR_EXTENSIONS.map(|extension| component.with_extension(extension).exists());
        Self { has_manifest, has_wit }
    }
}

/// Returns the error for the first link that must not be read, or `None` if all links may be read. A file next to a
/// component must not be a link to a file outside of the plugin directory, because the host shows its content.
fn first_link_refusal<'p>(root: &Path, mut links: impl Iterator<Item = &'p PathBuf>) -> Option<Error> {
    links.find_map(|path| link_refusal(root, path))
}

/// Returns the error for a file that must not be read. `None` if the target of `path` exists and is in the plugin directory
/// `root`.
fn link_refusal(root: &Path, path: &Path) -> Option<Error> {
    let message = match fs::canonicalize(path) {
        Ok(target) if target.starts_with(root) => return None,
        Ok(_) => "a file of the package is a link that leads out of the plugin directory".to_owned(),
        Err(error) => format!("a file of the package could not be read: {error}"),
    };
    Some(Error::new(ErrorKind::Io, Phase::Registry, message))
}
