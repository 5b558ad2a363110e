//! The plugins that ship with the source of Toolwit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::embedded::unpack;
use crate::commands::build::build;
use crate::input::environment::variable;
use crate::output::printer::Printer;
use toolwit::build::Build;
use toolwit::{Error, ErrorKind, Phase};

/// The repository in which the command was compiled. Building executes code of the source, so no other directory is built, whatever
/// files it has.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file of the repository, which may have been removed since.
const LANDMARK: &str = "plugins/customers/Cargo.toml";

/// The shipped plugins, built and up to date.
pub(crate) struct ShippedPlugins {
    /// The directory of the components.
    pub(crate) directory: PathBuf,
    /// The components, sorted by name.
    pub(crate) components: Vec<PathBuf>,
}

impl ShippedPlugins {
    /// Builds the components that are missing or older than their source.
    ///
    /// # Errors
    /// [`ErrorKind::Build`] if the source is missing or does not compile, [`ErrorKind::Cancelled`] after an interrupt.
    pub(crate) async fn ready(printer: Printer, cancel: &CancellationToken) -> Result<Self, Error> {
        let root = find_root()?;
        let directory = target_directory(&root).join("plugins");
        let mut components = Vec::new();
        for source in sources(&root)? {
            let name = source.file_name().unwrap_or_default();
            let component = directory.join(name).with_added_extension("wasm");
            if is_stale(&component, &source) {
                build(Build::new(&source).out(&component), printer, cancel).await?;
            }
            components.push(component);
        }
        Ok(Self { directory, components })
    }
}

/// Finds the source: the repository in which the command was compiled, if the current directory is in it, else the source inside the
/// command, which is written to the user's data directory.
fn find_root() -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let here = fs::canonicalize(".").unwrap_or_default();
    if let Ok(root) = fs::canonicalize(REPOSITORY)
        && here.starts_with(&root)
        && root.join(LANDMARK).is_file()
    {
        return Ok(root);
    }
    let failed = |why: String| {
        let message = format!("the source of the shipped plugins cannot be written: {why}");
        Error::new(ErrorKind::Build, Phase::Build, message)
            .with_suggestion("run the demo in a clone of the Toolwit repository")
    };
    let base = etcetera::choose_base_strategy().map_err(|error| failed(error.to_string()))?;
    let root = base.data_dir().join("toolwit").join("demo");
    unpack(&root).map_err(|error| failed(error.to_string()).with_source(error))?;
    Ok(root)
}

/// Lists the source directories of the plugins, sorted by name.
fn sources(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |error: std::io::Error| {
        let message = format!("`{}` could not be read: {error}", root.join("plugins").display());
        Error::new(ErrorKind::Build, Phase::Build, message).with_source(error)
    };
    let mut sources = Vec::new();
    for entry in fs::read_dir(root.join("plugins")).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join("Cargo.toml").is_file() {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn target_directory(root: &Path) -> PathBuf {
    variable("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Returns whether a component is missing or older than its source.
fn is_stale(component: &Path, source: &Path) -> bool {
    let built = fs::metadata(component).and_then(|metadata| metadata.modified()).ok();
    built.is_none() || built < newest_change(source)
}

/// Returns the latest modification time of the files below a directory.
fn newest_change(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let changes = entries.filter_map(|entry| match entry.file_type().ok()? {
        kind if kind.is_dir() && entry.file_name() != "target" => newest_change(&entry.path()),
        kind if kind.is_file() => entry.metadata().and_then(|metadata| metadata.modified()).ok(),
        _ => None,
    });
    changes.max()
}
