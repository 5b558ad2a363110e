//! The metadata database: cached metadata of plugins, tool health, and key–value stores of plugins.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths::{absolute, path_text};
use crate::input::configuration::data_path;
use crate::input::environment::variable;
use toolwit::store::SqliteStore;
use toolwit::{Error, ToolwitBuilder};

/// The environment variable with the path to the database.
const VARIABLE: &str = "TOOLWIT_STORE";

/// The path that selects a database in memory. A host without a database file stores its metadata in memory.
const MEMORY: &str = ":memory:";

/// Options for the metadata database.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreFlags {
    /// Path to the metadata database, or `:memory:` [env: TOOLWIT_STORE] [default: toolwit/store.db in the user's data
    /// directory]
    #[arg(long = "store", value_name = "FILE")]
    store_file: Option<PathBuf>,
}

impl StoreFlags {
    /// Selects a database in memory.
    pub(crate) fn in_memory() -> Self {
        Self {
            store_file: Some(MEMORY.into()),
        }
    }

    /// Returns the flags for use in another directory: with an absolute path. If the option is not set, the path from the
    /// environment variable is filled in.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let store_file = match self.named_file() {
            Some(path) if path != Path::new(MEMORY) => Some(absolute(&path)?),
            path => path,
        };
        Ok(Self { store_file })
    }

    /// Returns the option for a command line in another directory, if the database is not the default one.
    pub(crate) fn to_arguments(&self) -> Result<Vec<String>, Error> {
        match self.for_other_directory()?.store_file {
            Some(path) => Ok(vec!["--store".to_owned(), path_text(&path)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Adds the database to a host. If the default database cannot be used, a warning is logged and the host works without
    /// a database. If a database that the option or the environment names cannot be used, building the host fails.
    pub(crate) fn add_to(&self, builder: ToolwitBuilder) -> ToolwitBuilder {
        match (self.named_file(), self.path()) {
            (Some(path), _) if path == Path::new(MEMORY) => builder,
            (Some(path), _) => builder.store_file(path),
            (None, Some(path)) => builder.store_file_if_usable(path),
            (None, None) => builder,
        }
    }

    /// Opens the database. Returns its path, and an error if it cannot be opened. Returns `None` if the database is in
    /// memory, or if the path of the default database is unknown because there is no home directory.
    pub(crate) async fn check(&self) -> Option<(PathBuf, Result<(), Error>)> {
        let path = self.path().filter(|path| path != Path::new(MEMORY))?;
        let store = SqliteStore::open_file(&path).await;
        Some((path, store.map(drop)))
    }

    /// Returns the path to the database file, which may not exist yet, or `:memory:`. Returns `None` if the path of the
    /// default database is unknown because there is no home directory.
    fn path(&self) -> Option<PathBuf> {
        self.named_file().or_else(|| data_path("store.db"))
    }

    /// Returns the path that the option or the environment names, if any.
    fn named_file(&self) -> Option<PathBuf> {
        self.store_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}
