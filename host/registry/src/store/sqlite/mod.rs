//! One SQLite file, shared by several processes.

mod open;
mod packages;
mod told;
mod values;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::StoreError;

/// Remembers in one file. Every change is a transaction: a process that is killed leaves all of it or nothing.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the store, and makes it when it is new. A store that is damaged is put aside with a warning, and a new one made.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] for a file that is no store, which stays as it is; [`StoreError::Newer`], [`StoreError::Directory`], or the database's own.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Mutex::new(open::open(path)?),
        })
    }

    /// Makes a store that lasts as long as the process.
    ///
    /// # Errors
    /// The database's own.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self {
            connection: Mutex::new(open::in_memory()?),
        })
    }

    /// A panic while the lock was held rolled its transaction back.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
