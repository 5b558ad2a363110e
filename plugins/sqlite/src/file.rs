//! The files of a database, and errors as text that a model can act on.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Error, ErrorCode};

/// The age from which a lock is that of a call that was stopped.
const LOCK_AGE_MAX: Duration = Duration::from_secs(5 * 60);

/// The error for SQL without a statement, such as a comment.
pub(crate) const NO_STATEMENT: &str = "the SQL contains no statement";

/// Size and modification time of a file; `None` if it does not exist.
type Stamp = Option<(u64, Option<SystemTime>)>;

/// The files of a database at one time. Two equal values mean that no program has written in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    database: Stamp,
    journal: Stamp,
    wal: Stamp,
    is_locked: bool,
}

impl Files {
    /// Reads the metadata of the files of an existing database.
    pub(crate) fn of(path: &str) -> Result<Self, String> {
        let database = fs::metadata(path).map_err(|_| format!("there is no `{path}` in a granted directory"))?;
        if !database.is_file() {
            return Err(format!("`{path}` is not a file"));
        }
        Ok(Self {
            database: Some(stamp(&database)),
            journal: stamp_of(&companion(path, "-journal")),
            wal: stamp_of(&companion(path, "-wal")),
            is_locked: is_locked(path),
        })
    }

    /// Returns whether another call changes the database.
    pub(crate) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Returns whether a program is changing the database, or stopped in the middle of a change. The next change undoes that
    /// one.
    pub(crate) fn has_unfinished_change(&self) -> bool {
        self.journal.is_some_and(|(size, _)| size > 0)
    }

    /// Returns whether the newest rows are in a write-ahead log.
    pub(crate) fn has_log(&self) -> bool {
        self.wal.is_some_and(|(size, _)| size > 0)
    }
}

/// Returns whether another program has the database open in the mode of the write-ahead log, in which its locks are in shared
/// memory.
pub(crate) fn is_open_elsewhere(path: &str) -> bool {
    companion(path, "-shm").exists()
}

/// Removes the lock of a call that was stopped while it changed the database.
pub(crate) fn remove_old_lock(path: &str) {
    let lock = companion(path, ".lock");
    if lock.exists() && !is_locked(path) {
        // If it fails, the database stays locked, which the next statement reports.
        let _ = fs::remove_dir(lock);
    }
}

/// Removes the file of a new database in which nothing was stored. The caller holds its lock.
pub(crate) fn remove_empty(path: &str) {
    if fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        // An empty file is a database without tables, so a failure does no harm.
        let _ = fs::remove_file(path);
    }
}

/// Returns whether SQLite's lock, a directory next to the database, exists and is recent.
fn is_locked(path: &str) -> bool {
    let modified = fs::metadata(companion(path, ".lock")).and_then(|lock| lock.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age < LOCK_AGE_MAX))
}

/// Returns the path of a file that SQLite puts next to a database.
fn companion(path: &str, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn stamp(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

fn stamp_of(path: &Path) -> Stamp {
    fs::metadata(path).ok().map(|metadata| stamp(&metadata))
}

/// Describes an error of SQLite.
pub(crate) fn describe(error: Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            "the statement may not do that: a query only reads, changes stay in this database, and neither may attach databases, control \
             transactions or change settings"
                .to_owned()
        }
        Some(ErrorCode::DatabaseBusy) => "another call changes the database at the same time; try again".to_owned(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            format!("{error}; a change needs a directory that is granted for writing")
        }
        _ => error.to_string(),
    }
}
