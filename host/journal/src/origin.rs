//! The origin of a file with sessions: its id, and an authentication code by which a program recognizes the files of its
//! user.

use rusqlite::{Connection, params};
use toolwit_agent::JournalError;

/// The origin of a file with sessions.
///
/// A program can compute an authentication code from the id of the file and a secret key of its user, and store the code
/// in the file. If the code in a file does not match, the file does not belong to this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// The id of the file: a random text that never changes.
    pub id: String,
    /// The authentication code, if a program has stored one.
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
    let updated_rows = connection.execute("UPDATE origin SET code = ?1", params![code]);
    updated_rows.map_err(JournalError::store).map(drop)
}
