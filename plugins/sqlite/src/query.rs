//! Queries and their rows.

use std::fmt::Write as _;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Batch, Row, params_from_iter};

use crate::Database;
use crate::file::{NO_STATEMENT, describe};

/// The maximum length of a value, in characters.
const VALUE_CHARS_MAX: usize = 10_000;

/// The size of the values of a result, in bytes, from which no further row is returned.
const RESULT_BYTES_MAX: usize = 1 << 20;

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with their values as text.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether there are more rows.
    pub is_truncated: bool,
}

impl Database {
    /// Runs one query, and returns up to `limit` rows.
    ///
    /// # Errors
    /// If the SQL is not one statement, changes something, or fails.
    pub fn query(&self, sql: &str, parameters: &[Value], limit: usize) -> Result<Rows, String> {
        let mut statements = Batch::new(&self.connection, sql);
        let mut statement = statements.next().map_err(describe)?.ok_or(NO_STATEMENT)?;
        if statements.next().map_err(describe)?.is_some() {
            return Err("there are several statements; a query is one".to_owned());
        }
        let columns = statement.column_names().into_iter().map(ToOwned::to_owned).collect();
        let mut result = Rows {
            columns,
            ..Rows::default()
        };
        let mut bytes = 0;
        let mut rows = statement.query(params_from_iter(parameters)).map_err(describe)?;
        while let Some(row) = rows.next().map_err(describe)? {
            if result.rows.len() == limit || bytes > RESULT_BYTES_MAX {
                result.is_truncated = true;
                break;
            }
            let values = row_values(row, result.columns.len())?;
            bytes += values.iter().flatten().map(String::len).sum::<usize>();
            result.rows.push(values);
        }
        Ok(result)
    }
}

fn row_values(row: &Row<'_>, count: usize) -> Result<Vec<Option<String>>, String> {
    let values = (0..count).map(|column| row.get_ref(column).map(value_text).map_err(describe));
    values.collect()
}

/// Returns a value as text, shortened.
fn value_text(value: ValueRef<'_>) -> Option<String> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => real.to_string(),
        ValueRef::Text(bytes) => shortened(&String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => {
            let shown = &bytes[..bytes.len().min(VALUE_CHARS_MAX / 2)];
            let mut text = shown.iter().fold("x'".to_owned(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
            text.push_str(if shown.len() < bytes.len() { "…'" } else { "'" });
            text
        }
    })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
