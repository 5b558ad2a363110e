//! Queries for sessions. They block the calling thread.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde_json::Value;
use toolwit_agent::{JournalError, SessionId, SessionSummary, TraceEntry, check_fork};

use crate::large_texts;

/// The key of a session: the id of its row in the table `sessions`.
pub(crate) type SessionKey = i64;

/// The query for the entries that a summary needs: the first entry, the last one, and those that begin or end a turn.
const SUMMARY_QUERY: &str =
    "SELECT sequence, entry FROM entries WHERE session = ?1 AND (event IN ('turn_started', 'finished')
     OR sequence = (SELECT min(sequence) FROM entries WHERE session = ?1)
     OR sequence = (SELECT max(sequence) FROM entries WHERE session = ?1)) ORDER BY sequence";

/// Returns the key of a session.
pub(crate) fn find(connection: &Connection, session: &SessionId) -> Result<SessionKey, JournalError> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM sessions WHERE name = ?1")
        .map_err(JournalError::store)?;
    let key = statement.query_row([session.as_str()], |row| row.get(0)).optional();
    key.map_err(JournalError::store)?
        .ok_or_else(|| JournalError::Missing(session.clone()))
}

pub(crate) fn create(connection: &Connection, session: &SessionId) -> Result<SessionKey, JournalError> {
    let inserted_rows = connection
        .execute("INSERT OR IGNORE INTO sessions (name) VALUES (?1)", [session.as_str()])
        .map_err(JournalError::store)?;
    if inserted_rows == 0 {
        return Err(JournalError::Exists(session.clone()));
    }
    Ok(connection.last_insert_rowid())
}

/// Stores entries in one transaction. Skips entries whose sequence numbers are already stored.
pub(crate) fn append(
    connection: &mut Connection,
    session: SessionKey,
    entries: Vec<TraceEntry>,
) -> Result<(), JournalError> {
    let mut texts = HashMap::new();
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let value = serde_json::to_value(&entry).map_err(JournalError::store)?;
        let event = value["event"].as_str().unwrap_or_default().to_owned();
        let value = large_texts::extract(value, &mut texts);
        rows.push((sql_integer(entry.sequence), event, value.to_string()));
    }
    let mut insert_all = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let insert = "INSERT OR IGNORE INTO texts (session, digest, text) VALUES (?1, ?2, ?3)";
            let mut insert = transaction.prepare_cached(insert)?;
            for (digest, text) in &texts {
                insert.execute(params![session, digest, text])?;
            }
            let insert = "INSERT OR IGNORE INTO entries (session, sequence, event, entry) VALUES (?1, ?2, ?3, ?4)";
            let mut insert = transaction.prepare_cached(insert)?;
            for (sequence, event, entry) in &rows {
                insert.execute(params![session, sequence, event, entry])?;
            }
        }
        transaction.commit()
    };
    insert_all().map_err(JournalError::store)
}

pub(crate) fn entries(connection: &Connection, session: SessionKey) -> Result<Vec<TraceEntry>, JournalError> {
    read_entries(
        connection,
        session,
        "SELECT sequence, entry FROM entries WHERE session = ?1 ORDER BY sequence",
    )
}

/// Reads the entries that the query selects.
fn read_entries(connection: &Connection, session: SessionKey, query: &str) -> Result<Vec<TraceEntry>, JournalError> {
    let read_rows = || -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = connection.prepare_cached(query)?;
        let rows = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let rows = read_rows().map_err(JournalError::store)?;
    rows.into_iter()
        .map(|(sequence, text)| {
            parse_entry(connection, session, &text).map_err(|reason| JournalError::Entry {
                sequence: u64::try_from(sequence).unwrap_or_default(),
                reason,
            })
        })
        .collect()
}

/// Parses an entry, and restores its large texts.
///
/// # Errors
/// The reason why the entry cannot be read.
fn parse_entry(connection: &Connection, session: SessionKey, text: &str) -> Result<TraceEntry, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut find = |digest: &str| {
        let query = "SELECT text FROM texts WHERE session = ?1 AND digest = ?2";
        let mut statement = connection.prepare_cached(query).ok()?;
        statement.query_row(params![session, digest], |row| row.get(0)).ok()
    };
    let value = large_texts::restore(value, &mut find).map_err(|digest| format!("the text {digest} is missing"))?;
    serde_json::from_value(value).map_err(|error| {
        // For an unknown event, serde lists all known events. The list would not help the reader of the error.
        let reason = error.to_string();
        match reason.split_once(", expected one of") {
            Some((problem, _)) => problem.to_owned(),
            None => reason,
        }
    })
}

/// Returns the summaries of all sessions, most recently changed first.
pub(crate) fn summaries(connection: &Connection) -> Result<Vec<SessionSummary>, JournalError> {
    let read_rows = || -> rusqlite::Result<Vec<(SessionKey, String, i64)>> {
        let query = "SELECT id, name, (SELECT count(*) FROM entries WHERE session = id) FROM sessions";
        let mut statement = connection.prepare(query)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect()
    };
    let mut summaries = Vec::new();
    for (key, name, count) in read_rows().map_err(JournalError::store)? {
        let count = u64::try_from(count).unwrap_or_default();
        // A session whose name is invalid cannot be opened. It must not prevent the list of the others.
        let Ok(session) = name.parse() else { continue };
        summaries.push(match read_entries(connection, key, SUMMARY_QUERY) {
            Ok(entries) => SessionSummary::of(session, count, &entries),
            // One unreadable session, for example of a newer version, must not prevent the list of the others.
            Err(error @ JournalError::Entry { .. }) => SessionSummary::unreadable(session, count, &error),
            Err(error) => return Err(error),
        });
    }
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.changed_at_ms));
    Ok(summaries)
}

/// Creates the session `new` with the entries of `session` whose sequence numbers are lower than `end`; all of them if it is `None`.
pub(crate) fn fork(
    connection: &mut Connection,
    session: &SessionId,
    new: &SessionId,
    end: Option<u64>,
) -> Result<(), JournalError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(JournalError::store)?;
    let source_key = find(&transaction, session)?;
    let query = "SELECT count(*) FROM entries WHERE session = ?1";
    let count = transaction.query_row(query, [source_key], |row| row.get::<_, i64>(0));
    let count = count.map_err(JournalError::store)?;
    check_fork(session, end, u64::try_from(count).unwrap_or_default())?;
    let new_key = create(&transaction, new)?;
    let copy = || -> rusqlite::Result<()> {
        let copy_texts =
            "INSERT INTO texts (session, digest, text) SELECT ?2, digest, text FROM texts WHERE session = ?1";
        transaction.execute(copy_texts, params![source_key, new_key])?;
        let copy_entries = "INSERT INTO entries (session, sequence, event, entry)
            SELECT ?2, sequence, event, entry FROM entries WHERE session = ?1 AND sequence < ?3";
        transaction.execute(
            copy_entries,
            params![source_key, new_key, sql_integer(end.unwrap_or(u64::MAX))],
        )?;
        Ok(())
    };
    copy().and_then(|()| transaction.commit()).map_err(JournalError::store)
}

pub(crate) fn remove(connection: &Connection, session: &SessionId) -> Result<(), JournalError> {
    let key = find(connection, session)?;
    let deleted_rows = connection.execute("DELETE FROM sessions WHERE id = ?1", [key]);
    deleted_rows.map(drop).map_err(JournalError::store)
}

/// Converts a number to an integer of SQLite, which is signed. A number that is too large becomes the largest integer.
pub(crate) fn sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
