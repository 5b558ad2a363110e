//! A store in one SQLite file, which several processes can share.

mod dynamic_tools;
mod open;
mod packages;
mod values;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::StoreError;

/// A store in one SQLite file. Every change is a transaction, so a killed process leaves no partial change.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the store and creates it if it does not exist. A damaged store is renamed with a warning and replaced by a new one.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] for a file that is not a store, which is not changed; [`StoreError::Newer`];
    /// [`StoreError::Directory`]; [`StoreError::Database`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Mutex::new(open::open(path)?),
        })
    }

    /// Creates a store in memory.
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
