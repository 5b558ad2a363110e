//! A store in one SQLite file, which several processes can share.

mod dynamic_tools;
mod methods;
mod open;
mod packages;
mod tools;
mod values;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::StoreError;
use toolwit_core::{Error, ErrorKind, Phase};

/// A store in one SQLite file. Every change is a transaction, so a killed process leaves no partial change.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the store and creates it if it does not exist. A damaged store is renamed and replaced by an empty store, and
    /// a warning is logged.
    ///
    /// # Errors
    /// Every [`StoreError`]. A file that is not a store is not changed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Mutex::new(open::open(path)?),
        })
    }

    /// Opens the store like [`SqliteStore::open`], without blocking the runtime. The error names the file.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], with the [`StoreError`] as its source; [`ErrorKind::Internal`] if the opening
    /// task panics.
    pub async fn open_file(path: &Path) -> Result<Arc<Self>, Error> {
        let file = path.to_owned();
        let task_result = tokio::task::spawn_blocking(move || Self::open(&file)).await;
        let opened = task_result.map_err(|error| {
            let message = "opening the metadata database failed unexpectedly";
            Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
        })?;
        opened.map(Arc::new).map_err(|error| {
            let suggestion = match &error {
                StoreError::Foreign => "use the path of a Toolwit store or of a new file",
                StoreError::Newer { .. } => "use a newer version of the program, or another file",
                _ => "check the file and its directory, or use another file",
            };
            let message = format!("the store {} cannot be used: {error}", path.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion(suggestion)
                .with_source(error)
        })
    }

    /// Creates an SQLite store in memory.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self {
            connection: Mutex::new(open::in_memory()?),
        })
    }

    /// Locks the connection. Ignores poisoning, because a panic rolls back the open transaction.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
