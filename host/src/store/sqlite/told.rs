//! What plugins told of their tools, in SQLite.

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::SqliteStore;
use crate::store::{StoreError, ToldTools};

impl ToldTools for SqliteStore {
    fn told_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT told FROM told_tools WHERE plugin = ?1 AND digest = ?2")?;
        Ok(statement.query_row([plugin, digest], |row| row.get(0)).optional()?)
    }

    fn keep_told_tools(&self, plugin: &str, digest: &str, told: &str) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(
            "DELETE FROM told_tools WHERE NOT EXISTS
             (SELECT 1 FROM packages WHERE name = told_tools.plugin AND packages.digest = told_tools.digest)",
            [],
        )?;
        transaction.execute(
            "INSERT INTO told_tools (plugin, digest, told) VALUES (?1, ?2, ?3)
             ON CONFLICT (plugin, digest) DO UPDATE SET told = ?3",
            params![plugin, digest, told],
        )?;
        Ok(transaction.commit()?)
    }
}
