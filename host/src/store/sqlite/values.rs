//! Values that plugins keep, in SQLite.

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::SqliteStore;
use crate::store::{KeyValueStore, StoreError};

impl KeyValueStore for SqliteStore {
    fn value(&self, owner: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached("SELECT value FROM key_values WHERE owner = ?1 AND key = ?2")?;
        Ok(statement.query_row([owner, key], |row| row.get(0)).optional()?)
    }

    fn set_value(&self, owner: &str, key: &str, value: &[u8], owner_bytes_max: u64) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let others: i64 = transaction.query_row(
            "SELECT coalesce(sum(octet_length(key) + length(value)), 0) FROM key_values WHERE owner = ?1 AND key <> ?2",
            [owner, key],
            |row| row.get(0),
        )?;
        let bytes = others.unsigned_abs() + (key.len() + value.len()) as u64;
        if bytes > owner_bytes_max {
            return Err(StoreError::Full {
                bytes,
                bytes_max: owner_bytes_max,
            });
        }
        transaction.execute(
            "INSERT INTO key_values (owner, key, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (owner, key) DO UPDATE SET value = ?3",
            params![owner, key, value],
        )?;
        Ok(transaction.commit()?)
    }

    fn remove_value(&self, owner: &str, key: &str) -> Result<(), StoreError> {
        self.connection()
            .execute("DELETE FROM key_values WHERE owner = ?1 AND key = ?2", [owner, key])?;
        Ok(())
    }

    fn keys(&self, owner: &str, after: Option<&str>, keys_max: usize) -> Result<Vec<String>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT key FROM key_values WHERE owner = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3",
        )?;
        let keys_max = i64::try_from(keys_max).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![owner, after, keys_max], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
