//! Databases that are read.

use std::thread;
use std::time::Duration;

use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::authorizer;
use crate::file::{Files, describe};
use crate::query::Rows;

/// The maximum number of times that a query is run because other programs write.
const ATTEMPTS_MAX: usize = 20;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(25);

/// The maximum size of a value, in bytes.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// The file system of SQLite without locks, which WASI does not have.
const WITHOUT_LOCKS: &str = "unix-none";

/// The objects of the schema. SQLite's own tables and the automatic indexes have no statement.
const SCHEMA: &str =
    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                      ORDER BY tbl_name, type DESC, name";

/// A database that is open for reading.
///
/// WASI has no locks of files. [`read`](Self::read) therefore compares the files before and after, and reads again if another
/// program wrote in the meantime.
#[derive(Debug)]
pub struct Database {
    pub(crate) connection: Connection,
}

impl Database {
    /// Opens a database and reads it.
    ///
    /// # Errors
    /// If it is not in a granted directory, another program writes it all the time or stopped in the middle of a change, or
    /// `read` fails.
    pub fn read<T>(path: &str, read: impl Fn(&Self) -> Result<T, String>) -> Result<T, String> {
        for _ in 0..ATTEMPTS_MAX {
            let before = Files::of(path)?;
            if !before.is_locked() {
                let result = Self::open(path, &before).and_then(|database| read(&database));
                if Files::of(path)? == before {
                    return result;
                }
            }
            #[expect(clippy::disallowed_methods, reason = "a plugin has one thread and no executor")]
            thread::sleep(PAUSE);
        }
        Err("another program changes the database at the same time; try again".to_owned())
    }

    /// Lists the objects of the schema: kind, name and the SQL that created each.
    ///
    /// # Errors
    /// If the file is not a database.
    pub fn schema(&self) -> Result<Rows, String> {
        self.query(SCHEMA, &[], usize::MAX)
    }

    fn open(path: &str, files: &Files) -> Result<Self, String> {
        if files.has_unfinished_change() {
            return Err(format!(
                "another program is changing `{path}`, or stopped before it had finished; `execute` undoes an unfinished change"
            ));
        }
        let connection = if files.has_log() {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let connection = Connection::open_with_flags_and_vfs(path, flags, WITHOUT_LOCKS).map_err(describe)?;
            // In this mode, the index of the log is not in shared memory, which WASI does not have.
            connection
                .pragma_update(None, "locking_mode", "EXCLUSIVE")
                .map_err(describe)?;
            connection
        } else {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags).map_err(describe)?
        };
        guard(&connection, authorizer::allow_reads)?;
        Ok(Self { connection })
    }
}

/// Makes SQLite refuse other databases, large values, and actions that `authorize` denies.
pub(crate) fn guard(connection: &Connection, authorize: fn(&AuthContext<'_>) -> Authorization) -> Result<(), String> {
    let limits = [
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
    ];
    for (limit, value) in limits {
        connection.set_limit(limit, value).map_err(describe)?;
    }
    connection.authorizer(Some(move |context: AuthContext<'_>| authorize(&context)));
    Ok(())
}

/// Returns the URI with which SQLite assumes that the database does not change while it is open.
fn immutable_uri(path: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}
