//! Queries of the stored tools.

use serde::Serialize;

use super::record::ToolHealth;

/// A query of the stored tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolQuery {
    /// The order of the tools.
    pub order: ToolOrder,
    /// The category of the tools' packages. `None` selects all tools.
    pub category: Option<String>,
}

impl ToolQuery {
    /// Creates a query of all tools, in an order.
    #[must_use]
    pub fn new(order: ToolOrder) -> Self {
        Self { order, category: None }
    }

    /// Selects only the tools of packages of a category.
    #[must_use]
    pub fn in_category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }
}

/// The order of tools. Tools that are equal in this order are sorted by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolOrder {
    /// The tools with the most uses first.
    #[default]
    Uses,
    /// The tools with the best quality first; see [`StoredTool::quality_percent`].
    Quality,
    /// Broken tools first, then healthy tools, then tools whose health is unknown; see [`ToolHealth::is_broken`] and
    /// [`ToolHealth::execution`]. Most errors, such as invalid arguments or a missing grant, do not change the health of a
    /// tool; see [`health_check`](crate::health_check).
    Health,
}

/// A tool of the store, with its package and its health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoredTool {
    /// The tool's id.
    pub id: String,
    /// Its preferred name for models.
    pub name: String,
    /// The absolute path of its component.
    pub path: String,
    /// The category of its package.
    pub category: Option<String>,
    /// The quality of its description and of its manifest, in percent.
    pub quality_percent: u8,
    /// Its health and its uses.
    pub health: ToolHealth,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{key, package};
    use super::super::{CallRecord, CheckOutcome, CheckStage, MemoryStore, Store};
    use super::*;

    fn tools_are_queried_by_use_quality_health_and_category(store: &dyn Store) {
        let mut data_package = package("/a.wasm", "d1", &["add", "sub", "mul"]);
        data_package.category = Some("data".to_owned());
        for (tool, quality) in data_package.tools.iter_mut().zip([10, 90, 50]) {
            tool.quality_percent = quality;
        }
        store
            .update_packages(&[data_package, package("/b.wasm", "d2", &["zip"])], &[])
            .unwrap();
        let failed = CheckOutcome::Failure("it trapped".to_owned());
        for (tool, uses, outcome) in [
            ("mul", 5, Some(CheckOutcome::Success)),
            ("sub", 2, Some(failed)),
            ("add", 2, None),
        ] {
            let check = outcome.map(|outcome| (CheckStage::Execution, outcome));
            let calls = CallRecord { uses, check, at_ms: 1 };
            store.record_calls(&key("d1", &format!("p#{tool}")), &calls).unwrap();
        }
        let ids = |query: ToolQuery| -> Vec<String> {
            let tools = store.tools(&query).unwrap();
            tools
                .into_iter()
                .map(|tool| tool.id.trim_start_matches("p#").to_owned())
                .collect()
        };
        assert_eq!(ids(ToolQuery::new(ToolOrder::Uses)), ["mul", "add", "sub", "zip"]);
        assert_eq!(ids(ToolQuery::new(ToolOrder::Health)), ["sub", "mul", "add", "zip"]);
        let failed = CheckOutcome::Failure("no such import".to_owned());
        let calls = CallRecord::check(CheckStage::Loading, failed, 2);
        store.record_calls(&key("d1", "p#mul"), &calls).unwrap();
        assert_eq!(ids(ToolQuery::new(ToolOrder::Health)), ["mul", "sub", "add", "zip"]);
        assert_eq!(
            ids(ToolQuery::new(ToolOrder::Quality).in_category("data")),
            ["sub", "mul", "add"]
        );
        assert!(ids(ToolQuery::default().in_category("text")).is_empty());
        let most_used = store.tools(&ToolQuery::default()).unwrap().remove(0);
        assert_eq!((&*most_used.path, most_used.health.uses), ("/a.wasm", 5));
    }

    #[test]
    fn memory_store_answers_queries() {
        tools_are_queried_by_use_quality_health_and_category(&MemoryStore::new());
    }

    // accept: 124
    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_store_answers_queries() {
        let store = super::super::SqliteStore::in_memory().unwrap();
        tools_are_queried_by_use_quality_health_and_category(&store);
    }
}
