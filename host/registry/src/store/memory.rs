//! A store in memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::{CheckOutcome, CheckStage, PackageRecord, ToolHealth, ToolKey};
use super::{DynamicToolsRecord, DynamicToolsStore, Store, StoreError};

/// A store in memory, which lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    packages: BTreeMap<String, PackageRecord>,
    health: BTreeMap<ToolKey, ToolHealth>,
    dynamic_tools: BTreeMap<(String, String), String>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the content. Ignores poisoning, because a change cannot panic halfway.
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Deletes the health of tools that do not belong to a package.
    fn delete_unused_health(&mut self) {
        let packages = &self.packages;
        self.health
            .retain(|key, _| packages.values().any(|package| has_tool(package, key)));
    }

    /// Deletes dynamic tools that do not belong to a package.
    fn delete_unused_tools(&mut self) {
        if self.dynamic_tools.is_empty() {
            return;
        }
        let packages = self.packages.values();
        let present: HashSet<_> = packages.map(|package| (&*package.name, &*package.digest)).collect();
        self.dynamic_tools
            .retain(|(name, digest), _| present.contains(&(name.as_str(), digest.as_str())));
    }
}

fn has_tool(package: &PackageRecord, tool: &ToolKey) -> bool {
    package.digest == tool.digest && package.tools.iter().any(|known| known.id == tool.tool)
}

impl Store for MemoryStore {
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError> {
        Ok(self.content().packages.values().cloned().collect())
    }

    fn update_packages(&self, changed: &[PackageRecord], deleted: &[String]) -> Result<(), StoreError> {
        let mut content = self.content();
        for path in deleted {
            content.packages.remove(path);
        }
        for package in changed {
            content.packages.insert(package.path.clone(), package.clone());
        }
        content.delete_unused_health();
        content.delete_unused_tools();
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
        if content.packages.values().any(|package| has_tool(package, tool)) {
            content
                .health
                .entry(tool.clone())
                .or_default()
                .record(stage, outcome, at_ms);
        }
        Ok(())
    }
}

impl DynamicToolsStore for MemoryStore {
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError> {
        let key = (plugin.to_owned(), digest.to_owned());
        Ok(self.content().dynamic_tools.get(&key).cloned())
    }

    fn save_dynamic_tools(&self, records: &[DynamicToolsRecord]) -> Result<(), StoreError> {
        let mut content = self.content();
        for record in records {
            let key = (record.plugin.clone(), record.digest.clone());
            content.dynamic_tools.insert(key, record.tools.clone());
        }
        Ok(())
    }
}
