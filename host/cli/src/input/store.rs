//! The metadata database: cached metadata of plugins, tool health, and key–value stores of plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::input::environment::variable;
use toolwit::ToolwitBuilder;
use toolwit::store::{SqliteStore, StoreError};
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path to the database.
const VARIABLE: &str = "TOOLWIT_STORE";

/// The path that means a database in memory.
const MEMORY: &str = ":memory:";

/// Selects the metadata database.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreFlags {
    /// Path to the metadata database, or `:memory:` [env: TOOLWIT_STORE] [default: toolwit/store.db in the user's data
    /// directory]
    #[arg(long = "store", value_name = "FILE")]
    store_file: Option<PathBuf>,
}

impl StoreFlags {
    /// Adds the database to a host. If it cannot be opened, the host works without it and logs a warning.
    ///
    /// # Errors
    /// If the database cannot be opened and its path was set explicitly.
    pub(crate) async fn add_to(&self, builder: ToolwitBuilder) -> Result<ToolwitBuilder, Error> {
        let Some(path) = self.path() else { return Ok(builder) };
        let file = path.clone();
        let opened = tokio::task::spawn_blocking(move || open(&file)).await;
        let opened = opened.unwrap_or_else(|error| {
            Err(Error::new(
                ErrorKind::Internal,
                Phase::Registry,
                "opening the metadata database failed unexpectedly",
            )
            .with_source(error))
        });
        let store = match opened {
            Ok(store) => store,
            Err(error) if self.explicit_path().is_some() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "continuing without the metadata database: components are read again, and plugins cannot store values");
                return Ok(builder);
            }
        };
        let builder = if path == Path::new(MEMORY) {
            builder
        } else {
            builder.protect(&path)
        };
        Ok(builder.store(store.clone()).keyvalue(store))
    }

    /// Returns the path to the database, which may not exist yet, or `None` without a home directory.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        let user_path = || {
            Some(
                etcetera::choose_base_strategy()
                    .ok()?
                    .data_dir()
                    .join("toolwit")
                    .join("store.db"),
            )
        };
        self.explicit_path().or_else(user_path)
    }

    fn explicit_path(&self) -> Option<PathBuf> {
        self.store_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}

/// Opens the database, and creates it if it does not exist.
pub(crate) fn open(path: &Path) -> Result<Arc<SqliteStore>, Error> {
    let opened = if path == Path::new(MEMORY) {
        SqliteStore::in_memory()
    } else {
        SqliteStore::open(path)
    };
    opened.map(Arc::new).map_err(|error| {
        let suggestion = match &error {
            StoreError::Foreign => "pass another or a new file with `--store FILE`",
            StoreError::Newer { .. } => "use a newer version of toolwit, or pass another file with `--store FILE`",
            _ => "check the file and its directory, or pass another file with `--store FILE`",
        };
        let message = format!("the store {} cannot be used: {error}", path.display());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion(suggestion)
            .with_source(error)
    })
}
