//! A store in memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::{CallRecord, HealthState, PackageRecord, ToolHealth, ToolKey};
use super::{DynamicToolsRecord, DynamicToolsStore, Store, StoreError, StoredTool, ToolOrder, ToolQuery};

/// A store in memory. Its content is lost when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Mutex<StoreContent>,
}

#[derive(Debug, Default)]
struct StoreContent {
    /// By the path of the component.
    packages: BTreeMap<String, PackageRecord>,
    health: BTreeMap<ToolKey, ToolHealth>,
    /// By plugin name and component digest.
    dynamic_tools: BTreeMap<(String, String), String>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the content. Ignores poisoning, because a change cannot panic halfway.
    fn content(&self) -> MutexGuard<'_, StoreContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreContent {
    /// Deletes the health of tools that do not belong to a stored package.
    fn delete_unused_health(&mut self) {
        let packages = &self.packages;
        self.health
            .retain(|key, _| packages.values().any(|package| has_tool(package, key)));
    }

    /// Deletes dynamic tools that do not belong to a stored package.
    fn delete_unused_dynamic_tools(&mut self) {
        if self.dynamic_tools.is_empty() {
            return;
        }
        let packages = self.packages.values();
        let plugins: HashSet<_> = packages.map(|package| (&*package.name, &*package.digest)).collect();
        self.dynamic_tools
            .retain(|(name, digest), _| plugins.contains(&(name.as_str(), digest.as_str())));
    }
}

fn has_tool(package: &PackageRecord, tool: &ToolKey) -> bool {
    package.digest == tool.digest && package.tools.iter().any(|stored| stored.id == tool.tool)
}

/// Returns the position of a tool's health in [`ToolOrder::Health`].
fn health_rank(health: &ToolHealth) -> u8 {
    if health.is_broken() {
        0
    } else if health.execution == HealthState::Healthy {
        1
    } else {
        2
    }
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
        content.delete_unused_dynamic_tools();
        Ok(())
    }

    fn health(&self) -> Result<BTreeMap<ToolKey, ToolHealth>, StoreError> {
        Ok(self.content().health.clone())
    }

    fn tools(&self, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError> {
        let content = self.content();
        let is_selected = |package: &&PackageRecord| match &query.category {
            Some(category) => package.category.as_ref() == Some(category),
            None => true,
        };
        let packages = content.packages.values().filter(is_selected);
        let tools = packages.flat_map(|package| {
            package.tools.iter().map(|tool| {
                let key = ToolKey::new(package.digest.as_str(), tool.id.as_str());
                StoredTool {
                    id: tool.id.clone(),
                    name: tool.name.clone(),
                    path: package.path.clone(),
                    category: package.category.clone(),
                    quality_percent: tool.quality_percent,
                    health: content.health.get(&key).cloned().unwrap_or_default(),
                }
            })
        });
        let mut tools: Vec<_> = tools.collect();
        tools.sort_by(|one, other| {
            let order = match query.order {
                ToolOrder::Uses => other.health.uses.cmp(&one.health.uses),
                ToolOrder::Quality => other.quality_percent.cmp(&one.quality_percent),
                ToolOrder::Health => health_rank(&one.health).cmp(&health_rank(&other.health)),
            };
            order.then_with(|| one.id.cmp(&other.id))
        });
        Ok(tools)
    }

    fn record_calls(&self, tool: &ToolKey, calls: &CallRecord) -> Result<(), StoreError> {
        let mut content = self.content();
        if content.packages.values().any(|package| has_tool(package, tool)) {
            content.health.entry(tool.clone()).or_default().record(calls);
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
