//! The trait of the storage behind the key–value capability, and its implementation in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A failure of the key–value store. The guest receives the error message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyValueError {
    /// The plugin would exceed its quota.
    #[error("the store would exceed its quota of {bytes_max} bytes")]
    Full {
        /// The quota, in bytes.
        bytes_max: u64,
    },
    /// The storage behind the store failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// The bytes that count towards the quota for each entry, in addition to its bucket name, key and value. They account
/// for the overhead of an entry in memory or on disk.
pub const KEY_VALUE_ENTRY_OVERHEAD_BYTES: u64 = 64;

/// The storage of the plugins' values. An implementation isolates plugins and buckets from each other, and enforces
/// each plugin's quota. Each entry counts towards the quota of its plugin with the length of its bucket name, key and
/// value, plus [`KEY_VALUE_ENTRY_OVERHEAD_BYTES`]. The functions may block, because the host calls them on threads for
/// blocking work. A guest waits at most until the time limit of its call.
pub trait KeyValueStore: fmt::Debug + Send + Sync {
    /// Returns the value of a key, or `None` if the key does not exist.
    ///
    /// # Errors
    /// [`KeyValueError::Failed`].
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError>;

    /// Stores a value. Replaces an earlier value of the key.
    ///
    /// # Errors
    /// [`KeyValueError::Full`] if the plugin's values would exceed `bytes_max`; [`KeyValueError::Failed`].
    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError>;

    /// Deletes a value if it exists.
    ///
    /// # Errors
    /// [`KeyValueError::Failed`].
    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError>;

    /// Lists at most `keys_max` keys of a bucket in ascending order. With `after`, lists only the keys that come after
    /// this key, which need not exist.
    ///
    /// # Errors
    /// [`KeyValueError::Failed`].
    fn keys(
        &self,
        plugin: &str,
        bucket: &str,
        after: Option<&str>,
        keys_max: usize,
    ) -> Result<Vec<String>, KeyValueError>;
}

/// Values by plugin, then by bucket and key.
type ValuesByPlugin = BTreeMap<String, BTreeMap<(String, String), Vec<u8>>>;

/// A key–value store in memory. Its values are lost when the process ends.
#[derive(Debug, Default)]
pub struct MemoryKeyValueStore {
    values: Mutex<ValuesByPlugin>,
}

impl MemoryKeyValueStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the values. Ignores a poisoned lock, because a panic cannot leave a change incomplete.
    fn lock_values(&self) -> MutexGuard<'_, ValuesByPlugin> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValueStore for MemoryKeyValueStore {
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
        let values = self.lock_values();
        let plugin_values = values.get(plugin);
        Ok(plugin_values.and_then(|values| values.get(&(bucket.to_owned(), key.to_owned())).cloned()))
    }

    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError> {
        let mut values = self.lock_values();
        let plugin_values = values.entry(plugin.to_owned()).or_default();
        let other_entries = plugin_values
            .iter()
            .filter(|((other_bucket, other_key), _)| (other_bucket.as_str(), other_key.as_str()) != (bucket, key));
        let entry_bytes = |bucket: &str, key: &str, value: &[u8]| {
            (bucket.len() + key.len() + value.len()) as u64 + KEY_VALUE_ENTRY_OVERHEAD_BYTES
        };
        let used_bytes: u64 = other_entries
            .map(|((bucket, key), value)| entry_bytes(bucket, key, value))
            .sum();
        if used_bytes + entry_bytes(bucket, key, value) > bytes_max {
            return Err(KeyValueError::Full { bytes_max });
        }
        plugin_values.insert((bucket.to_owned(), key.to_owned()), value.to_owned());
        Ok(())
    }

    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError> {
        if let Some(plugin_values) = self.lock_values().get_mut(plugin) {
            plugin_values.remove(&(bucket.to_owned(), key.to_owned()));
        }
        Ok(())
    }

    fn keys(
        &self,
        plugin: &str,
        bucket: &str,
        after: Option<&str>,
        keys_max: usize,
    ) -> Result<Vec<String>, KeyValueError> {
        let values = self.lock_values();
        let plugin_values = values.get(plugin).into_iter().flatten();
        let keys = plugin_values
            .filter(|((key_bucket, _), _)| key_bucket == bucket)
            .map(|((_, key), _)| key);
        let later_keys = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(later_keys.take(keys_max).cloned().collect())
    }
}
