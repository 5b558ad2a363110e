//! Statements that change a database.

use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::types::Value;
use rusqlite::{Batch, Connection, OpenFlags, Transaction, TransactionBehavior, params_from_iter};

use crate::authorizer;
use crate::database::guard;
use crate::file::{Files, NO_STATEMENT, describe, is_open_elsewhere, remove_empty, remove_old_lock};

/// The file system of SQLite with a directory as the lock, because WASI has no locks of files.
const LOCKED_BY_DIRECTORY: &str = "unix-dotfile";

/// The time for which a change waits for another one.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The effect of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of rows that were inserted, updated or deleted.
    pub rows: u64,
    /// The row id of the last inserted row.
    pub last_row_id: i64,
}

/// Runs statements in one transaction. `parameters` are for a single statement. With `create`, creates a missing database.
///
/// # Errors
/// If the database does not exist, is not in a directory that is granted for writing, or is open in another program, or if a
/// statement fails. Nothing has changed then.
pub fn execute(path: &str, sql: &str, parameters: &[Value], create: bool) -> Result<Change, String> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let existing = Files::of(path);
    let is_new = existing.is_err();
    match existing {
        Ok(_) => {}
        Err(_) if create => flags |= OpenFlags::SQLITE_OPEN_CREATE,
        Err(missing) => return Err(format!("{missing}; `create` makes a new database")),
    }
    if is_open_elsewhere(path) {
        return Err(format!(
            "another program has `{path}` open (there is a `-shm` file): a change could damage it"
        ));
    }
    remove_old_lock(path);
    let mut connection = Connection::open_with_flags_and_vfs(path, flags, LOCKED_BY_DIRECTORY).map_err(describe)?;
    connection.busy_timeout(WAIT_MAX).map_err(describe)?;
    // In this mode, a write-ahead log needs no shared memory, which WASI does not have, and the lock lasts until the end.
    connection
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(describe)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(describe)?;
    let outcome = run_transaction(transaction, sql, parameters);
    if is_new && outcome.is_err() {
        remove_empty(path);
    }
    outcome
}

/// Runs the statements and commits them. A failure undoes them.
fn run_transaction(transaction: Transaction<'_>, sql: &str, parameters: &[Value]) -> Result<Change, String> {
    guard(&transaction, authorizer::allow_changes)?;
    let before = transaction.total_changes();
    run_statements(&transaction, sql, parameters)?;
    let change = Change {
        rows: transaction.total_changes() - before,
        last_row_id: transaction.last_insert_rowid(),
    };
    transaction.authorizer(None::<fn(AuthContext<'_>) -> Authorization>);
    transaction.commit().map_err(describe)?;
    Ok(change)
}

fn run_statements(connection: &Connection, sql: &str, parameters: &[Value]) -> Result<(), String> {
    let mut statements = Batch::new(connection, sql);
    let mut count = 0;
    while let Some(mut statement) = statements.next().map_err(describe)? {
        count += 1;
        if count > 1 && !parameters.is_empty() {
            return Err("there are several statements; parameters are for a single one".to_owned());
        }
        let mut rows = statement.query(params_from_iter(parameters)).map_err(describe)?;
        // Rows of `RETURNING` are not returned; the statement ends with the last one.
        while rows.next().map_err(describe)?.is_some() {}
    }
    match count {
        0 => Err(NO_STATEMENT.to_owned()),
        _ => Ok(()),
    }
}
