//! Opening a store: options of the database, schema versions and recovery.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::store::StoreError;
use toolwit_core::file::{create_private_directory, create_private_file};

/// The maximum time to wait for another process to finish writing.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// The application id of SQLite files that are Toolwit stores: "Tlwt".
const APPLICATION_ID: u32 = 0x546c_7774;

/// The migrations, each from one schema version to the next. The first one creates the tables.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("dynamic_tools.sql"),
    include_str!("methods.sql"),
    include_str!("dynamic_tools_names.sql"),
    include_str!("methods_description.sql"),
    include_str!("health_order.sql"),
];

/// Opens a store, creates it if it does not exist, and replaces it if it is a damaged store.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    if let Some(directory) = path.parent() {
        create_private_directory(directory).map_err(StoreError::File)?;
    }
    match connect(path) {
        Err(StoreError::Database(error)) if is_damage_error(&error) && !has_store_header(path) => {
            Err(StoreError::Foreign)
        }
        Err(StoreError::Database(error)) if is_damage_error(&error) => {
            tracing::warn!(store = %path.display(), %error, "the store is damaged; it is renamed and created again");
            rename_damaged(path).map_err(StoreError::File)?;
            connect(path)
        }
        other => other,
    }
}

/// Opens a database file and creates it if it does not exist. On Unix, makes the file and its log files private to the
/// owner.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    create_private_file(path).map_err(StoreError::File)?;
    let connection = configure_and_migrate(Connection::open(path)?)?;
    if let Err(error) = make_private(path) {
        tracing::warn!(store = %path.display(), %error, "other users may be able to read the store");
    }
    Ok(connection)
}

pub(super) fn in_memory() -> Result<Connection, StoreError> {
    configure_and_migrate(Connection::open_in_memory()?)
}

/// Checks that a database is a store or empty, sets its options and updates its schema.
fn configure_and_migrate(mut connection: Connection) -> Result<Connection, StoreError> {
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    // This check comes before any change, because the path may be wrong, and the file may belong to another program.
    if !is_store(&connection)? {
        return Err(StoreError::Foreign);
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a write-ahead log, `normal` loses no commit if the process is killed, and does not wait for the disk at each commit.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection)?;
    // A query that reads the tables fails if they are damaged.
    connection.query_row(
        "SELECT count(*) FROM packages LEFT JOIN tools ON package = packages.id",
        [],
        |_| Ok(()),
    )?;
    Ok(connection)
}

/// Updates the schema to the newest version.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    // An immediate transaction takes the write lock first, so that two processes do not both create the tables.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let supported = MIGRATIONS.len() as i64;
    let Some(migrations) = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found..)) else {
        return Err(StoreError::Newer { found, supported });
    };
    for migration in migrations {
        transaction.execute_batch(migration)?;
    }
    if !migrations.is_empty() {
        transaction.pragma_update(None, "user_version", supported)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(transaction.commit()?)
}

/// Returns whether a database is a store, or is empty and can become one.
fn is_store(connection: &Connection) -> Result<bool, StoreError> {
    let application_id: u32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let query = "SELECT count(*) = 2 OR (SELECT count(*) FROM sqlite_schema) = 0
         FROM sqlite_schema WHERE type = 'table' AND name IN ('packages', 'key_values')";
    let is_empty_or_has_tables: bool = connection.query_row(query, [], |row| row.get(0))?;
    // Stores of the first program version have no application id, but have both tables.
    Ok(application_id == APPLICATION_ID || (application_id == 0 && is_empty_or_has_tables))
}

/// Returns whether a file has the header of a store. A damaged file without this header is not renamed.
fn has_store_header(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    /// The offset of the application id in the file format.
    const APPLICATION_ID_OFFSET: usize = 68;
    let mut header = [0; APPLICATION_ID_OFFSET + 4];
    let read_result = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read_result.is_ok() && header.starts_with(MAGIC) && header[APPLICATION_ID_OFFSET..] == APPLICATION_ID.to_be_bytes()
}

/// Returns whether an error means that the file of a database is damaged or is not a database.
fn is_damage_error(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// The suffixes of the files that SQLite writes next to a database: the write-ahead log and its shared-memory index.
const LOG_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Adds the suffix `.damaged` to the name of a damaged store, so that a person can examine it, and deletes its log files.
/// Replaces a store that was renamed earlier.
fn rename_damaged(path: &Path) -> std::io::Result<()> {
    fs::rename(path, with_suffix(path, ".damaged"))?;
    for suffix in LOG_SUFFIXES {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the permissions of other users from the files of a store.
#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let log_files = LOG_SUFFIXES.map(|suffix| with_suffix(path, suffix));
    for file in log_files.iter().map(PathBuf::as_path).chain([path]) {
        let is_accessible_to_others =
            fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
        if is_accessible_to_others {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// Does nothing: on other platforms, the files have the permissions of their directory.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "the version of this function for Unix can fail")]
fn make_private(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
