//! The plugins that ship with the source of this command.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use crate::commands::build::build;
use crate::input::environment::variable;
use crate::output::printer::Printer;
use toolwit::build::Build;
use toolwit::{Error, ErrorKind, Phase};

/// The plugin by which a directory is known to hold the shipped ones.
const LANDMARK: &str = "plugins/customers/Cargo.toml";

/// Plugins that are built and up to date.
pub(crate) struct Shipped {
    /// Where the components lie.
    pub(crate) directory: PathBuf,
    /// The components, by name.
    pub(crate) components: Vec<PathBuf>,
}

impl Shipped {
    /// Builds what is missing or older than its source.
    ///
    /// # Errors
    /// [`ErrorKind::Build`] when the source is not there or does not build, [`ErrorKind::Cancelled`].
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

/// Finds the source: from the current directory upward, else where this command was built.
fn find_root() -> Result<PathBuf, Error> {
    let here = std::env::current_dir().unwrap_or_default();
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let mut places = here.ancestors().chain(built_from);
    let found = places.find(|place| place.join(LANDMARK).is_file());
    found.map(Path::to_owned).ok_or_else(|| {
        Error::new(
            ErrorKind::Build,
            Phase::Build,
            "the source of the shipped plugins is not here",
        )
        .with_suggestion("run it in a clone of Toolwit's repository, where `plugins/customers` is")
    })
}

/// Lists the directories of the plugins' sources, by name.
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

/// Whether a component is missing, or older than its source.
fn is_stale(component: &Path, source: &Path) -> bool {
    let built = fs::metadata(component).and_then(|metadata| metadata.modified()).ok();
    built.is_none() || built < newest_change(source)
}

/// Returns when a file below a directory was last changed.
fn newest_change(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let changes = entries.filter_map(|entry| match entry.file_type().ok()? {
        kind if kind.is_dir() && entry.file_name() != "target" => newest_change(&entry.path()),
        kind if kind.is_file() => entry.metadata().and_then(|metadata| metadata.modified()).ok(),
        _ => None,
    });
    changes.max()
}
