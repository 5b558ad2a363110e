//! The origin of a file with sessions: its identity, and a code from which a program recognizes its user.

use rusqlite::{Connection, params};
use toolwit_agent::JournalError;

/// The origin of a file with sessions. With a secret key of its user, a program can recognize the file of another user
/// by its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// The identity of the file: random, and the same as long as the file exists.
    pub id: String,
    /// The code that the program stored with the file.
    pub code: Option<String>,
    /// Whether the file has no sessions.
    pub is_empty: bool,
}

pub(crate) fn read(connection: &Connection) -> Result<FileOrigin, JournalError> {
    let query = "SELECT id, code, NOT EXISTS (SELECT 1 FROM sessions) FROM origin";
    let read = connection.query_row(query, [], |row| {
        Ok(FileOrigin {
            id: row.get(0)?,
            code: row.get(1)?,
            is_empty: row.get(2)?,
        })
    });
    read.map_err(JournalError::store)
}

pub(crate) fn store_code(connection: &Connection, code: &str) -> Result<(), JournalError> {
    let stored = connection.execute("UPDATE origin SET code = ?1", params![code]);
    stored.map_err(JournalError::store).map(drop)
}
