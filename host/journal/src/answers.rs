//! Queries for the answers to approval questions, which any process can store. A question is identified by the sequence
//! number of its entry.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use toolwit_agent::JournalError;
use toolwit_core::ApprovalAnswer;

use crate::session::{SessionKey, sql_integer};

/// Stores an answer to a question. Returns `false` and stores nothing if the question already has an answer, for example
/// from another process.
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

/// Returns the stored answer to a question, or `None` if the question has no answer yet.
pub(crate) fn find(
    connection: &Connection,
    session: SessionKey,
    question: u64,
) -> Result<Option<ApprovalAnswer>, JournalError> {
    let read_text = || -> rusqlite::Result<Option<String>> {
        let query = "SELECT answer FROM answers WHERE session = ?1 AND question = ?2";
        let mut statement = connection.prepare_cached(query)?;
        let text = statement.query_row(params![session, sql_integer(question)], |row| row.get(0));
        text.optional()
    };
    let text = read_text().map_err(JournalError::store)?;
    text.map(|text| parse(&text)).transpose()
}

/// Returns the stored answers of a session, by the numbers of their questions.
pub(crate) fn find_all(
    connection: &Connection,
    session: SessionKey,
) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError> {
    let read_rows = || -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = connection.prepare("SELECT question, answer FROM answers WHERE session = ?1")?;
        let rows = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let rows = read_rows().map_err(JournalError::store)?;
    rows.into_iter()
        .map(|(question, text)| Ok((u64::try_from(question).unwrap_or_default(), parse(&text)?)))
        .collect()
}

/// Returns the [data version](data_version) of the file, and the answer to a question. If the data version is still
/// `last_version`, the answer is not read and is `None`.
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

/// Returns a number that changes when another connection has written to the file. Writes of this connection do not change it.
fn data_version(connection: &Connection) -> Result<i64, JournalError> {
    let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0));
    version.map_err(JournalError::store)
}

fn parse(text: &str) -> Result<ApprovalAnswer, JournalError> {
    serde_json::from_str(text).map_err(JournalError::store)
}
