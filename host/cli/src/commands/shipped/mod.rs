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

/// The repository in which the command was compiled. A build executes code of its source. Therefore, the command does
/// not build any other clone of the repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file that shows that the repository still exists.
const REPOSITORY_MARKER: &str = "plugins/customers/Cargo.toml";

/// The source of the shipped plugins, and the directory of the built components.
pub(crate) struct ShippedPlugins {
    /// The root directory of the source.
    source_root: PathBuf,
    /// Whether the source is a clone of the repository, and not the source that is embedded in the command.
    pub(crate) is_clone: bool,
    /// The directory of the built components.
    pub(crate) component_directory: PathBuf,
}

impl ShippedPlugins {
    /// Finds the source. If the current directory is in the repository in which the command was compiled, the source is
    /// this repository. Otherwise, the source that is embedded in the command is written to the user's data directory.
    ///
    /// # Errors
    /// [`ErrorKind::Build`] if the embedded source cannot be written.
    pub(crate) fn find() -> Result<Self, Error> {
        let (source_root, is_clone) = match find_clone() {
            Some(root) => (root, true),
            None => (unpack_source()?, false),
        };
        let component_directory = target_directory(&source_root).join("plugins");
        Ok(Self {
            source_root,
            is_clone,
            component_directory,
        })
    }

    /// Builds the component of a plugin, if the component is missing or older than the source of the plugin. Copies the
    /// manifest of the package next to the component. Returns the path of the component.
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
        let source = self.source_root.join("plugins").join(name);
        let component = self.component_directory.join(name).with_added_extension("wasm");
        if is_stale(&component, &source) {
            build(Build::new(&source).out(&component), printer, cancel).await?;
        }
        let manifest = source.join(name).with_added_extension("toml");
        let manifest_copy = component.with_extension("toml");
        if manifest.is_file() {
            fs::copy(&manifest, &manifest_copy).map_err(|error| {
                let message = format!("`{}` could not be written: {error}", manifest_copy.display());
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

/// Writes the embedded source to the user's data directory, and returns its root directory.
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

/// Returns the directory to which cargo writes the files of a build.
fn target_directory(root: &Path) -> PathBuf {
    variable("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Returns whether a component is missing or older than its source.
fn is_stale(component: &Path, source: &Path) -> bool {
    let built_at = fs::metadata(component).and_then(|metadata| metadata.modified()).ok();
    built_at.is_none() || built_at < latest_modification(source)
}

/// Returns the latest modification time of the files below a directory, except those in directories named `target`.
/// Files that cannot be read are skipped. `None` if no file remains.
fn latest_modification(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let times = entries.filter_map(|entry| match entry.file_type().ok()? {
        file_type if file_type.is_dir() && entry.file_name() != "target" => latest_modification(&entry.path()),
        file_type if file_type.is_file() => entry.metadata().and_then(|metadata| metadata.modified()).ok(),
        _ => None,
    });
    times.max()
}
