//! The origin of a file with sessions: its identity, and a code by which a program recognizes the files of its user.

use rusqlite::{Connection, params};
use toolwit_agent::JournalError;

/// The origin of a file with sessions. A program can compute a code from the id and a secret key of its user, and store
/// the code in the file. A file with another code does not belong to this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// The identity of the file: random, and the same as long as the file exists.
    pub id: String,
    /// The code that a program stored in the file, if any.
    pub code: Option<String>,
    /// Whether the file has no sessions.
    pub is_empty: bool,
}

pub(crate) fn read(connection: &Connection) -> Result<FileOrigin, JournalError> {
    let query = "SELECT id, code, NOT EXISTS (SELECT 1 FROM sessions) FROM origin";
    let origin = connection.query_row(query, [], |row| {
        Ok(FileOrigin {
            id: row.get(0)?,
            code: row.get(1)?,
            is_empty: row.get(2)?,
        })
    });
    origin.map_err(JournalError::store)
}

pub(crate) fn store_code(connection: &Connection, code: &str) -> Result<(), JournalError> {
    let stored = connection.execute("UPDATE origin SET code = ?1", params![code]);
    stored.map_err(JournalError::store).map(drop)
}
