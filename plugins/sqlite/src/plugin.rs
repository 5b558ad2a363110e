//! The WIT bindings of the database tools.

use self::bindings::exports::toolwit_demo::sqlite::sqlite as wit;
use crate::{Database, Value, execute};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Default maximum number of rows.
const ROWS_DEFAULT: u32 = 100;

struct Plugin;

impl wit::Guest for Plugin {
    fn list_tables(database: String) -> Result<Vec<wit::Entry>, String> {
        let schema = Database::read(&database, Database::schema)?;
        let entries = schema.rows.into_iter().map(|row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || values.next().unwrap_or_default();
            wit::Entry {
                kind: next(),
                name: next(),
                sql: next(),
            }
        });
        Ok(entries.collect())
    }

    fn query(
        database: String,
        sql: String,
        parameters: Option<Vec<wit::Value>>,
        limit: Option<u32>,
    ) -> Result<wit::Rows, String> {
        let parameters = convert(parameters);
        let limit = usize::try_from(limit.unwrap_or(ROWS_DEFAULT)).unwrap_or(usize::MAX);
        let rows = Database::read(&database, |database| database.query(&sql, &parameters, limit))?;
        Ok(wit::Rows {
            columns: rows.columns,
            rows: rows.rows,
            truncated: rows.is_truncated,
        })
    }

    fn execute(
        database: String,
        sql: String,
        parameters: Option<Vec<wit::Value>>,
        create: Option<bool>,
    ) -> Result<wit::Change, String> {
        let change = execute(&database, &sql, &convert(parameters), create.unwrap_or(false))?;
        Ok(wit::Change {
            changed_rows: change.rows,
            last_row_id: change.last_row_id,
        })
    }
}

fn convert(parameters: Option<Vec<wit::Value>>) -> Vec<Value> {
    let values = parameters.unwrap_or_default().into_iter();
    values
        .map(|value| match value {
            wit::Value::Null => Value::Null,
            wit::Value::Integer(integer) => Value::Integer(integer),
            wit::Value::Real(real) => Value::Real(real),
            wit::Value::Text(text) => Value::Text(text),
        })
        .collect()
}
