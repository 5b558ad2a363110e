//! Values of plugins in the host's store.

use std::fmt;
use std::sync::Arc;

use super::keyvalue::{KeyValue, KeyValueError};
use crate::store::{KeyValueStore, StoreError};

/// Keeps the values of plugins in a store, so that they are there for the next process.
#[derive(Clone)]
pub struct StoredKeyValue {
    store: Arc<dyn KeyValueStore>,
}

impl StoredKeyValue {
    /// Keeps values in this store.
    #[must_use]
    pub fn new(store: Arc<dyn KeyValueStore>) -> Self {
        Self { store }
    }
}

impl fmt::Debug for StoredKeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKeyValue").finish_non_exhaustive()
    }
}

/// What the keys of a bucket begin with. The length keeps `a` and `a/b` apart, whatever is in the names.
fn prefix(bucket: &str) -> String {
    format!("{}:{bucket}", bucket.len())
}

fn place(bucket: &str, key: &str) -> String {
    format!("{}/{key}", prefix(bucket))
}

fn told(error: StoreError) -> KeyValueError {
    match error {
        StoreError::Full { bytes_max, .. } => KeyValueError::Full { bytes_max },
        // What a database says may name files of the host; a guest need not know them.
        error => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "values of plugins cannot be kept"
            );
            KeyValueError::Failed("the host's store cannot be used now".to_owned())
        }
    }
}

impl KeyValue for StoredKeyValue {
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
        self.store.value(plugin, &place(bucket, key)).map_err(told)
    }

    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError> {
        self.store
            .set_value(plugin, &place(bucket, key), value, bytes_max)
            .map_err(told)
    }

    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError> {
        self.store.remove_value(plugin, &place(bucket, key)).map_err(told)
    }

    fn keys(
        &self,
        plugin: &str,
        bucket: &str,
        after: Option<&str>,
        keys_max: usize,
    ) -> Result<Vec<String>, KeyValueError> {
        let after = after.map_or_else(|| prefix(bucket), |after| place(bucket, after));
        let own = place(bucket, "");
        let keys = self.store.keys(plugin, Some(&after), keys_max).map_err(told)?;
        Ok(keys
            .iter()
            .map_while(|key| key.strip_prefix(&own))
            .map(str::to_owned)
            .collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    // attack: C19, attack: B18
    fn keeps_plugins_and_buckets_apart_and_bounded(store: Arc<dyn KeyValueStore>) {
        let values = StoredKeyValue::new(store);
        values.set("one", "a", "key", b"value", 100).unwrap();
        assert_eq!(values.get("one", "a", "key").unwrap().unwrap(), b"value");
        assert_eq!(values.get("other", "a", "key").unwrap(), None, "another plugin");
        assert_eq!(values.get("one", "a/key", "").unwrap(), None, "another bucket");
        let full = values.set("one", "b", "large", &[0; 100], 100);
        assert!(matches!(full, Err(KeyValueError::Full { bytes_max: 100 })), "{full:?}");
        for (bucket, key) in [("a", ""), ("a", "x"), ("a/", "y"), ("", "z"), ("b", "w")] {
            values.set("one", bucket, key, b"", 200).unwrap();
        }
        assert_eq!(values.keys("one", "a", None, 10).unwrap(), ["", "key", "x"]);
        assert_eq!(values.keys("one", "a", Some("key"), 10).unwrap(), ["x"]);
        assert_eq!(values.keys("one", "a", None, 2).unwrap(), ["", "key"]);
        assert_eq!(values.keys("one", "", None, 10).unwrap(), ["z"]);
        values.delete("one", "a", "key").unwrap();
        assert_eq!(values.get("one", "a", "key").unwrap(), None);
    }

    #[test]
    fn both_stores_keep_values_of_plugins() {
        keeps_plugins_and_buckets_apart_and_bounded(Arc::new(MemoryStore::new()));
        #[cfg(feature = "store")]
        keeps_plugins_and_buckets_apart_and_bounded(Arc::new(crate::store::SqliteStore::in_memory().unwrap()));
    }
}
