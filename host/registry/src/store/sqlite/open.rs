//! Opening a store: settings, versions, repair.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::store::StoreError;

/// How long to wait for another process to finish writing.
const BUSY_WALL_MAX: Duration = Duration::from_secs(5);

/// Marks a file as a store of Toolwit: "Tlwt".
const APPLICATION_ID: u32 = 0x546c_7774;

/// The steps from each version of the schema to the next.
const STEPS: &[&str] = &[include_str!("schema.sql"), include_str!("told.sql")];

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    if let Some(directory) = path.parent() {
        create_private(directory).map_err(StoreError::Directory)?;
    }
    match prepare(Connection::open(path)?) {
        Err(StoreError::Database(error)) if is_damage(&error) && !has_our_heading(path) => Err(StoreError::Foreign),
        Err(StoreError::Database(error)) if is_damage(&error) => {
            tracing::warn!(store = %path.display(), %error, "the store is damaged; it is put aside and made anew");
            put_aside(path).map_err(StoreError::Directory)?;
            prepare(Connection::open(path)?)
        }
        other => other,
    }
}

pub(super) fn in_memory() -> Result<Connection, StoreError> {
    prepare(Connection::open_in_memory()?)
}

fn prepare(mut connection: Connection) -> Result<Connection, StoreError> {
    connection.busy_timeout(BUSY_WALL_MAX)?;
    // Before anything is changed: a file that was named by mistake is somebody's data.
    if !is_ours(&connection)? {
        return Err(StoreError::Foreign);
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a write-ahead log this survives the end of the process at any moment, and costs no wait for the disk.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection)?;
    // Damage of the tables shows when they are read.
    connection.query_row(
        "SELECT count(*) FROM packages LEFT JOIN tools ON package = packages.id",
        [],
        |_| Ok(()),
    )?;
    Ok(connection)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    // Taken at once, so that two processes which open a new store do not both make it.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = STEPS.len() as i64;
    let Some(steps) = usize::try_from(found).ok().and_then(|found| STEPS.get(found..)) else {
        return Err(StoreError::Newer { found, known });
    };
    for step in steps {
        transaction.execute_batch(step)?;
    }
    if !steps.is_empty() {
        transaction.pragma_update(None, "user_version", known)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(transaction.commit()?)
}

/// Whether a database is a store, or is empty and can become one.
fn is_ours(connection: &Connection) -> Result<bool, StoreError> {
    let application_id: u32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let ours = "SELECT count(*) = 2 OR (SELECT count(*) FROM sqlite_schema) = 0
         FROM sqlite_schema WHERE type = 'table' AND name IN ('packages', 'key_values')";
    let (none, looks_like_one) = (application_id == 0, connection.query_row(ours, [], |row| row.get(0))?);
    // Stores of the first version bear no mark.
    Ok(application_id == APPLICATION_ID || (none && looks_like_one))
}

/// Whether a file begins as a store does, so that one which is damaged may be put aside.
fn has_our_heading(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    /// Where the file format has the application's id.
    const APPLICATION_ID_AT: usize = 68;
    let mut heading = [0; APPLICATION_ID_AT + 4];
    let is_read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut heading));
    is_read.is_ok() && heading.starts_with(MAGIC) && heading[APPLICATION_ID_AT..] == APPLICATION_ID.to_be_bytes()
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Renames a damaged store, with its log, out of the way; the last one put aside is kept for a look.
fn put_aside(path: &Path) -> std::io::Result<()> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    fs::rename(path, beside(".damaged"))?;
    for suffix in ["-wal", "-shm"] {
        match fs::remove_file(beside(suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What a tool answered or failed with is nobody else's business.
fn create_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
