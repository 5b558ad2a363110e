//! Discovered dynamic tools, in SQLite.

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use super::SqliteStore;
use crate::store::{DynamicToolsRecord, DynamicToolsStore, StoreError};

impl DynamicToolsStore for SqliteStore {
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT tools FROM dynamic_tools WHERE plugin = ?1 AND digest = ?2")?;
        Ok(statement.query_row([plugin, digest], |row| row.get(0)).optional()?)
    }

    fn save_dynamic_tools(&self, records: &[DynamicToolsRecord]) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for record in records {
            transaction
                .prepare_cached(
                    "INSERT INTO dynamic_tools (plugin, digest, tools) VALUES (?1, ?2, ?3)
                     ON CONFLICT (plugin, digest) DO UPDATE SET tools = ?3",
                )?
                .execute(params![record.plugin, record.digest, record.tools])?;
        }
        Ok(transaction.commit()?)
    }
}

/// Deletes the dynamic tools that do not belong to a stored package.
pub(super) fn delete_unused(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    transaction.execute(
        "DELETE FROM dynamic_tools WHERE NOT EXISTS
         (SELECT 1 FROM packages WHERE name = dynamic_tools.plugin AND packages.digest = dynamic_tools.digest)",
        [],
    )?;
    Ok(())
}
