//! A store that lasts as long as the process.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::{CheckOutcome, CheckStage, PackageRecord, ToolHealth, ToolKey};
use super::{KeyValueStore, Store, StoreError, ToldRecord, ToldTools};

/// Remembers in memory, for embedders who want no file.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    packages: BTreeMap<String, PackageRecord>,
    health: BTreeMap<ToolKey, ToolHealth>,
    values: BTreeMap<(String, String), Vec<u8>>,
    told: BTreeMap<(String, String), String>,
}

impl MemoryStore {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every change below is whole before anything can panic, so that a poisoned lock is no harm.
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// An owner's keys and values, in order.
    fn of_owner<'c>(&'c self, owner: &'c str) -> impl Iterator<Item = (&'c str, &'c [u8])> {
        let from_first = self.values.range((owner.to_owned(), String::new())..);
        let own = from_first.take_while(move |((of, _), _)| of == owner);
        own.map(|((_, key), value)| (key.as_str(), value.as_slice()))
    }

    /// Drops the health of tools that no package has any more.
    fn forget_health(&mut self) {
        let packages = &self.packages;
        self.health
            .retain(|key, _| packages.values().any(|package| has(package, key)));
    }

    /// Drops what plugins told that no package is of any more.
    fn forget_told(&mut self) {
        if self.told.is_empty() {
            return;
        }
        let packages = self.packages.values();
        let there: HashSet<_> = packages.map(|package| (&*package.name, &*package.digest)).collect();
        self.told
            .retain(|(name, digest), _| there.contains(&(name.as_str(), digest.as_str())));
    }
}

fn has(package: &PackageRecord, tool: &ToolKey) -> bool {
    package.digest == tool.digest && package.tools.iter().any(|known| known.id == tool.tool)
}

impl Store for MemoryStore {
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError> {
        Ok(self.content().packages.values().cloned().collect())
    }

    fn update_packages(&self, changed: &[PackageRecord], gone: &[String]) -> Result<(), StoreError> {
        let mut content = self.content();
        for path in gone {
            content.packages.remove(path);
        }
        for package in changed {
            content.packages.insert(package.path.clone(), package.clone());
        }
        content.forget_health();
        content.forget_told();
        Ok(())
    }

    fn health(&self) -> Result<BTreeMap<ToolKey, ToolHealth>, StoreError> {
        Ok(self.content().health.clone())
    }

    fn record_check(
        &self,
        tool: &ToolKey,
        stage: CheckStage,
        outcome: &CheckOutcome,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        let mut content = self.content();
        if content.packages.values().any(|package| has(package, tool)) {
            content
                .health
                .entry(tool.clone())
                .or_default()
                .record(stage, outcome, at_ms);
        }
        Ok(())
    }
}

impl ToldTools for MemoryStore {
    fn told_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        let key = (plugin.to_owned(), digest.to_owned());
        Ok(self.content().told.get(&key).cloned())
    }

    fn keep_told_tools(&self, told: &[ToldRecord]) -> Result<(), StoreError> {
        let mut content = self.content();
        for record in told {
            let key = (record.plugin.clone(), record.digest.clone());
            content.told.insert(key, record.told.clone());
        }
        Ok(())
    }
}

impl KeyValueStore for MemoryStore {
    fn value(&self, owner: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.content().values.get(&(owner.to_owned(), key.to_owned())).cloned())
    }

    fn set_value(&self, owner: &str, key: &str, value: &[u8], owner_bytes_max: u64) -> Result<(), StoreError> {
        let mut content = self.content();
        let others = content.of_owner(owner).filter(|(at, _)| *at != key);
        let bytes: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        let bytes = (bytes + key.len() + value.len()) as u64;
        if bytes > owner_bytes_max {
            return Err(StoreError::Full {
                bytes,
                bytes_max: owner_bytes_max,
            });
        }
        content
            .values
            .insert((owner.to_owned(), key.to_owned()), value.to_owned());
        Ok(())
    }

    fn remove_value(&self, owner: &str, key: &str) -> Result<(), StoreError> {
        self.content().values.remove(&(owner.to_owned(), key.to_owned()));
        Ok(())
    }

    fn keys(&self, owner: &str, after: Option<&str>, keys_max: usize) -> Result<Vec<String>, StoreError> {
        let content = self.content();
        let keys = content.of_owner(owner).map(|(key, _)| key);
        let listed = keys.filter(|key| after.is_none_or(|after| *key > after));
        Ok(listed.map(str::to_owned).take(keys_max).collect())
    }
}
