//! Opening the database.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use toolwit_agent::JournalError;
use toolwit_core::file::{create_private_directory, create_private_file};

use crate::lock;

/// Maximum time that a query waits for another process to finish writing.
const BUSY_WALL_MAX: Duration = Duration::from_secs(5);

/// The `application_id` in the header of a SQLite file with sessions: `Tlws` in ASCII.
const APPLICATION_ID: u32 = 0x546c_7773;

/// The changes of the schema, in order. The `user_version` of a file is the number of changes that were applied to it.
const SCHEMA_CHANGES: [&str; 3] = [
    include_str!("schema.sql"),
    include_str!("answers.sql"),
    include_str!("origin.sql"),
];

/// Opens the database file. Creates the file and the directory with its locks if they do not exist; only their owner can
/// access them. A file of another program or of a newer version is refused before the directory with the locks is created.
pub(crate) fn open(path: &Path) -> Result<Connection, JournalError> {
    if let Some(directory) = path.parent() {
        create_private_directory(directory).map_err(JournalError::store)?;
    }
    create_private_file(path).map_err(JournalError::store)?;
    let connection = Connection::open(path).map_err(JournalError::store)?;
    check_format(&connection)?;
    create_private_directory(&lock::directory(path)).map_err(JournalError::store)?;
    prepare(connection)
}

/// Configures a connection, and creates or updates the schema of its file.
fn prepare(mut connection: Connection) -> Result<Connection, JournalError> {
    let configure = |connection: &mut Connection| -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_WALL_MAX)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Each commit waits for the disk. An entry must survive a power failure, because the effect of the call that the
        // entry announces may survive.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // The transaction locks the file at once, so that two processes that open a new store do not both create its
        // schema.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: usize = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version < SCHEMA_CHANGES.len() {
            SCHEMA_CHANGES[version..]
                .iter()
                .try_for_each(|sql| transaction.execute_batch(sql))?;
            transaction.pragma_update(None, "user_version", SCHEMA_CHANGES.len())?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        transaction.commit()
    };
    configure(&mut connection).map_err(JournalError::store)?;
    Ok(connection)
}

/// Rejects a file of another program or of a newer version, before its content is changed.
fn check_format(connection: &Connection) -> Result<(), JournalError> {
    let query = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let read = || -> rusqlite::Result<_> {
        Ok((
            query("PRAGMA application_id")?,
            query("PRAGMA user_version")?,
            query("SELECT count(*) FROM sqlite_schema")?,
        ))
    };
    let message = match read().map_err(JournalError::store)? {
        (id, version, _) if id == i64::from(APPLICATION_ID) && is_supported(version) => return Ok(()),
        // A new, empty file.
        (0, 0, 0) => return Ok(()),
        (id, ..) if id == i64::from(APPLICATION_ID) => "a newer version of the program wrote the file",
        _ => "the file is a database of another program; it was not changed",
    };
    Err(JournalError::Store {
        message: message.to_owned(),
        source: None,
    })
}

fn is_supported(version: i64) -> bool {
    usize::try_from(version).is_ok_and(|version| version <= SCHEMA_CHANGES.len())
}
