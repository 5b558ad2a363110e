//! Methods of entities, in SQLite.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};

use crate::store::StoreError;
use crate::store::record::MethodRecord;

/// Replaces the methods of the package whose row has this id.
pub(super) fn put(transaction: &Transaction<'_>, package_id: i64, methods: &[MethodRecord]) -> Result<(), StoreError> {
    transaction
        .prepare_cached("DELETE FROM methods WHERE package = ?1")?
        .execute([package_id])?;
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO methods (package, id, name, description, terms, entry_tools)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for method in methods {
        let entry_tools = serde_json::to_string(&method.entry_tools).unwrap_or_default();
        insert.execute(params![
            package_id,
            method.id,
            method.name,
            method.description,
            method.terms,
            entry_tools
        ])?;
    }
    Ok(())
}

/// Reads the methods of all packages, by the id of the package's row.
pub(super) fn by_package(connection: &Connection) -> Result<HashMap<i64, Vec<MethodRecord>>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT package, id, name, description, terms, entry_tools FROM methods ORDER BY rowid")?;
    let rows = statement.query_map([], |row| {
        let entry_tools: String = row.get(5)?;
        let method = MethodRecord {
            id: row.get(1)?,
            name: row.get(2)?,
            description: row.get(3)?,
            terms: row.get(4)?,
            entry_tools: serde_json::from_str(&entry_tools).unwrap_or_default(),
        };
        Ok((row.get::<_, i64>(0)?, method))
    })?;
    let mut methods: HashMap<i64, Vec<MethodRecord>> = HashMap::new();
    for row in rows {
        let (package_id, method) = row?;
        methods.entry(package_id).or_default().push(method);
    }
    Ok(methods)
}
