//! The port behind the key–value capability: where the values of plugins are stored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a store could not be used. Told to the guest as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyValueError {
    /// It would hold more than its grant allows.
    #[error("the store would hold more than {bytes_max} bytes")]
    Full {
        /// The bound.
        bytes_max: u64,
    },
    /// The place where it lives failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// Where the values of plugins live. An implementation keeps plugins and buckets apart, and holds each plugin to its bound over
/// all its buckets, keys and values. It is called where the guest runs, so that it must answer at once.
pub trait KeyValueStore: fmt::Debug + Send + Sync {
    /// Returns a value.
    ///
    /// # Errors
    /// [`KeyValueError::Failed`].
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError>;

    /// Keeps a value.
    ///
    /// # Errors
    /// [`KeyValueError::Full`] when the plugin's stores would grow beyond `bytes_max`; [`KeyValueError::Failed`].
    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError>;

    /// Forgets a value.
    ///
    /// # Errors
    /// [`KeyValueError::Failed`].
    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError>;

    /// Lists keys after one, in order, at most `keys_max`.
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

/// Values in memory, for as long as the process runs.
#[derive(Debug, Default)]
pub struct MemoryKeyValueStore {
    /// By plugin, then by bucket and key.
    values: Mutex<BTreeMap<String, BTreeMap<(String, String), Vec<u8>>>>,
}

impl MemoryKeyValueStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the values. Each change is complete before anything can panic, so a poisoned lock is harmless.
    fn values(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<(String, String), Vec<u8>>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValueStore for MemoryKeyValueStore {
    fn get(&self, plugin: &str, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
        let values = self.values();
        let own = values.get(plugin);
        Ok(own.and_then(|own| own.get(&(bucket.to_owned(), key.to_owned())).cloned()))
    }

    fn set(&self, plugin: &str, bucket: &str, key: &str, value: &[u8], bytes_max: u64) -> Result<(), KeyValueError> {
        let mut values = self.values();
        let own = values.entry(plugin.to_owned()).or_default();
        let others = own
            .iter()
            .filter(|((other_bucket, other_key), _)| (other_bucket.as_str(), other_key.as_str()) != (bucket, key));
        let used: usize = others
            .map(|((bucket, key), value)| bucket.len() + key.len() + value.len())
            .sum();
        if (used + bucket.len() + key.len() + value.len()) as u64 > bytes_max {
            return Err(KeyValueError::Full { bytes_max });
        }
        own.insert((bucket.to_owned(), key.to_owned()), value.to_owned());
        Ok(())
    }

    fn delete(&self, plugin: &str, bucket: &str, key: &str) -> Result<(), KeyValueError> {
        if let Some(own) = self.values().get_mut(plugin) {
            own.remove(&(bucket.to_owned(), key.to_owned()));
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
        let values = self.values();
        let own = values.get(plugin).into_iter().flatten();
        let keys = own.filter(|((own, _), _)| own == bucket).map(|((_, key), _)| key);
        let listed = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(listed.take(keys_max).cloned().collect())
    }
}
