//! The plugins that ship with the source of Toolwit.

mod embedded;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use self::embedded::unpack;
use crate::commands::build::build;
use crate::input::environment::variable;
use crate::output::printer::Printer;
use toolwit::build::Build;
use toolwit::{Error, ErrorKind, Phase};

/// The repository in which the command was compiled. Building executes code of the source, so the command builds no
/// other clone of the repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file that shows that the repository still exists.
const REPOSITORY_MARKER: &str = "plugins/customers/Cargo.toml";

/// The source of the shipped plugins, and the directory of the built components.
pub(crate) struct ShippedPlugins {
    root: PathBuf,
    /// Whether the source is a clone of the repository.
    pub(crate) is_clone: bool,
    /// The directory of the components.
    pub(crate) directory: PathBuf,
}

impl ShippedPlugins {
    /// Finds the source: the repository in which the command was compiled, if the current directory is in it, or the
    /// source inside the command, which is written to the user's data directory.
    ///
    /// # Errors
    /// [`ErrorKind::Build`] if the source cannot be written.
    pub(crate) fn find() -> Result<Self, Error> {
        let (root, is_clone) = match find_clone() {
            Some(root) => (root, true),
            None => (unpack_source()?, false),
        };
        let directory = target_directory(&root).join("plugins");
        Ok(Self {
            root,
            is_clone,
            directory,
        })
    }

    /// Builds a component, if it is missing or older than its source, and copies the manifest of the package next to
    /// it.
    ///
    /// # Errors
    /// [`ErrorKind::Build`] if the source does not compile or the manifest cannot be copied, [`ErrorKind::Cancelled`]
    /// after an interrupt.
    pub(crate) async fn build(
        &self,
        name: &str,
        printer: Printer,
        cancel: &CancellationToken,
    ) -> Result<PathBuf, Error> {
        let source = self.root.join("plugins").join(name);
        let component = self.directory.join(name).with_added_extension("wasm");
        if is_stale(&component, &source) {
            build(Build::new(&source).out(&component), printer, cancel).await?;
        }
        let manifest = source.join(name).with_added_extension("toml");
        let copy = component.with_extension("toml");
        if manifest.is_file() {
            fs::copy(&manifest, &copy).map_err(|error| {
                let message = format!("`{}` could not be written: {error}", copy.display());
                Error::new(ErrorKind::Build, Phase::Build, message).with_source(error)
            })?;
        }
        Ok(component)
    }
}

/// Lists the shipped plugins with their descriptions, sorted by name.
pub(crate) fn list() -> Vec<(&'static str, String)> {
    embedded::descriptions()
}

/// Returns the repository in which the command was compiled, if the current directory is in it.
fn find_clone() -> Option<PathBuf> {
    let current_directory = fs::canonicalize(".").ok()?;
    let root = fs::canonicalize(REPOSITORY).ok()?;
    (current_directory.starts_with(&root) && root.join(REPOSITORY_MARKER).is_file()).then_some(root)
}

/// Writes the source inside the command to the user's data directory.
fn unpack_source() -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let unwritable = |reason: String| {
        let message = format!("the source of the shipped plugins cannot be written: {reason}");
        Error::new(ErrorKind::Build, Phase::Build, message)
            .with_suggestion("run the command in a clone of the Toolwit repository")
    };
    let base = etcetera::choose_base_strategy().map_err(|error| unwritable(error.to_string()))?;
    let root = base.data_dir().join("toolwit").join("shipped");
    unpack(&root).map_err(|error| unwritable(error.to_string()).with_source(error))?;
    Ok(root)
}

fn target_directory(root: &Path) -> PathBuf {
    variable("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Returns whether a component is missing or older than its source.
fn is_stale(component: &Path, source: &Path) -> bool {
    let built_at = fs::metadata(component).and_then(|metadata| metadata.modified()).ok();
    built_at.is_none() || built_at < newest_change(source)
}

/// Returns the latest modification time of the files below a directory. `None` if there are no files that can be read.
fn newest_change(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let changes = entries.filter_map(|entry| match entry.file_type().ok()? {
        kind if kind.is_dir() && entry.file_name() != "target" => newest_change(&entry.path()),
        kind if kind.is_file() => entry.metadata().and_then(|metadata| metadata.modified()).ok(),
        _ => None,
    });
    changes.max()
}
