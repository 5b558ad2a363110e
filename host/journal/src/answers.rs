//! Answers to questions about calls, which any process can store.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use toolwit_agent::JournalError;
use toolwit_core::ApprovalAnswer;

use crate::session::{SessionKey, sql_integer};

/// Stores an answer to a question, unless the question has one. Returns `false` if it already has an answer, such as
/// one from another process.
pub(crate) fn store(
    connection: &Connection,
    session: SessionKey,
    question: u64,
    answer: &ApprovalAnswer,
) -> Result<bool, JournalError> {
    let answer = serde_json::to_string(answer).map_err(JournalError::store)?;
    let insert = "INSERT OR IGNORE INTO answers (session, question, answer) VALUES (?1, ?2, ?3)";
    let inserted_rows = connection.execute(insert, params![session, sql_integer(question), answer]);
    Ok(inserted_rows.map_err(JournalError::store)? > 0)
}

/// Returns the stored answer to a question, or `None` if the question has none yet.
pub(crate) fn find(
    connection: &Connection,
    session: SessionKey,
    question: u64,
) -> Result<Option<ApprovalAnswer>, JournalError> {
    let read = || -> rusqlite::Result<Option<String>> {
        let query = "SELECT answer FROM answers WHERE session = ?1 AND question = ?2";
        let mut statement = connection.prepare_cached(query)?;
        let text = statement.query_row(params![session, sql_integer(question)], |row| row.get(0));
        text.optional()
    };
    let text = read().map_err(JournalError::store)?;
    text.map(|text| parse(&text)).transpose()
}

/// Returns the stored answers of a session, by question.
pub(crate) fn find_all(
    connection: &Connection,
    session: SessionKey,
) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError> {
    let rows = || -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = connection.prepare("SELECT question, answer FROM answers WHERE session = ?1")?;
        let rows = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let rows = rows().map_err(JournalError::store)?;
    rows.into_iter()
        .map(|(question, text)| Ok((u64::try_from(question).unwrap_or_default(), parse(&text)?)))
        .collect()
}

/// Returns the version of the file, and the answer to a question. If the file still has the version `last_version`, the
/// answer is not read and is `None`.
pub(crate) fn poll(
    connection: &Connection,
    session: SessionKey,
    question: u64,
    last_version: Option<i64>,
) -> Result<(i64, Option<ApprovalAnswer>), JournalError> {
    let version = data_version(connection)?;
    let answer = if last_version == Some(version) {
        None
    } else {
        find(connection, session, question)?
    };
    Ok((version, answer))
}

/// Returns a number that changes when another connection has written to the file.
fn data_version(connection: &Connection) -> Result<i64, JournalError> {
    let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0));
    version.map_err(JournalError::store)
}

fn parse(text: &str) -> Result<ApprovalAnswer, JournalError> {
    serde_json::from_str(text).map_err(JournalError::store)
}
