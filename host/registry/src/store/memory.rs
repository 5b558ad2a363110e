//! A store that lasts as long as the process.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::{CheckOutcome, CheckStage, PackageRecord, ToolHealth, ToolKey};
use super::{DynamicToolsRecord, Store, StoreError, ToldTools};

/// Remembers in memory, for embedders who want no file.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    packages: BTreeMap<String, PackageRecord>,
    health: BTreeMap<ToolKey, ToolHealth>,
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
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        let key = (plugin.to_owned(), digest.to_owned());
        Ok(self.content().told.get(&key).cloned())
    }

    fn save_dynamic_tools(&self, told: &[DynamicToolsRecord]) -> Result<(), StoreError> {
        let mut content = self.content();
        for record in told {
            let key = (record.plugin.clone(), record.digest.clone());
            content.told.insert(key, record.told.clone());
        }
        Ok(())
    }
}
