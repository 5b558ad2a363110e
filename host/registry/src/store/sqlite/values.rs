//! The key–value stores of plugins, in SQLite.

use std::error::Error;

use rusqlite::{OptionalExtension, TransactionBehavior, params};
use toolwit_sandbox::{KEY_VALUE_ENTRY_OVERHEAD_BYTES, KeyValueError, KeyValueStore};

use super::SqliteStore;

/// Returns the prefix that the column `key` has for all keys of a bucket, without the separator `/`: `4:data` for the bucket
/// `data`. Names of buckets and keys may contain `/`. The length of the bucket's name shows where the name ends, so that entries
/// of different buckets have different columns.
fn bucket_prefix(bucket: &str) -> String {
    format!("{}:{bucket}", bucket.len())
}

/// Returns the value of the column `key` for a key of a bucket: `4:data/a` for the key `a` of the bucket `data`.
fn key_column(bucket: &str, key: &str) -> String {
    format!("{}/{key}", bucket_prefix(bucket))
}

/// Logs a database error and returns an error without its text. The guest receives the returned error, and the text may
/// contain host paths.
fn unavailable(error: rusqlite::Error) -> KeyValueError {
    tracing::warn!(
        error = &error as &dyn Error,
        "the key–value stores of plugins cannot be read or written"
    );
    KeyValueError::Failed("the host's store is not available".to_owned())
}

impl KeyValueStore for SqliteStore {
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
        let connection = self.connection();
        let select = "SELECT value FROM key_values WHERE owner = ?1 AND key = ?2";
        let mut statement = connection.prepare_cached(select).map_err(unavailable)?;
        let value = statement.query_row([plugin, &key_column(bucket, key)], |row| row.get(0));
        value.optional().map_err(unavailable)
    }

    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError> {
        let key = key_column(bucket, key);
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(unavailable)?;
        let other_bytes = transaction.query_row(
            "SELECT coalesce(sum(octet_length(key) + length(value) + ?3), 0) FROM key_values WHERE owner = ?1 AND key <> ?2",
            params![plugin, key, KEY_VALUE_ENTRY_OVERHEAD_BYTES],
            |row| row.get::<_, i64>(0),
        );
        let other_bytes = other_bytes.map_err(unavailable)?.unsigned_abs();
        if other_bytes + (key.len() + value.len()) as u64 + KEY_VALUE_ENTRY_OVERHEAD_BYTES > bytes_max {
            return Err(KeyValueError::Full { bytes_max });
        }
        let upsert = "INSERT INTO key_values (owner, key, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (owner, key) DO UPDATE SET value = ?3";
        transaction
            .execute(upsert, params![plugin, key, value])
            .map_err(unavailable)?;
        transaction.commit().map_err(unavailable)
    }

    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError> {
        let delete = "DELETE FROM key_values WHERE owner = ?1 AND key = ?2";
        let deleted = self.connection().execute(delete, [plugin, &key_column(bucket, key)]);
        deleted.map(|_| ()).map_err(unavailable)
    }

    fn keys(
        &self,
        plugin: &str,
        bucket: &str,
        after: Option<&str>,
        keys_max: usize,
    ) -> Result<Vec<String>, KeyValueError> {
        // Without `after`, the list starts at the bucket's prefix without `/`, so that it includes the empty key.
        let after_column = after.map_or_else(|| bucket_prefix(bucket), |after| key_column(bucket, after));
        let key_prefix = key_column(bucket, "");
        let columns = (|| {
            let connection = self.connection();
            let select = "SELECT key FROM key_values WHERE owner = ?1 AND key > ?2 ORDER BY key LIMIT ?3";
            let mut statement = connection.prepare_cached(select)?;
            let keys_max = i64::try_from(keys_max).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![plugin, after_column, keys_max], |row| row.get(0))?;
            rows.collect::<Result<Vec<String>, rusqlite::Error>>()
        })();
        let columns = columns.map_err(unavailable)?;
        // The keys of a bucket are contiguous in the order of the column, so the first key of another bucket ends the list.
        Ok(columns
            .iter()
            .map_while(|column| column.strip_prefix(&key_prefix))
            .map(str::to_owned)
            .collect())
    }
}
