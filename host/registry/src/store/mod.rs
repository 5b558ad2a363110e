//! The metadata database: packages and their tools, tool health, and discovered dynamic tools. A [`SqliteStore`] also has
//! the key–value stores of plugins.
//!
//! Package metadata is a cache: after the loss of a store, the metadata is read from the plugin directories again. A
//! [`MemoryStore`] loses its content when it is dropped; a [`SqliteStore`] (feature `sqlite`) is a file that several
//! processes can share. All calls block; do not make them on async worker threads.

mod dynamic_tools;
mod error;
mod memory;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
mod tool_query;

pub use dynamic_tools::{DynamicToolsRecord, DynamicToolsStore};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use record::{
    CallRecord, CheckOutcome, CheckStage, HealthState, MethodRecord, PackageRecord, ToolHealth, ToolKey, ToolRecord,
};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use tool_query::{StoredTool, ToolOrder, ToolQuery};

use std::collections::BTreeMap;

/// A database of package metadata and tool health.
pub trait Store: DynamicToolsStore {
    /// Returns all packages with their tools, sorted by path.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError>;

    /// Deletes the packages at the paths `deleted`, and inserts the packages `changed`, in one transaction. A package
    /// replaces the stored package with the same path.
    ///
    /// A tool's health is deleted when the bytes of its component change. Discovered dynamic tools that do not belong
    /// to a stored package are deleted.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn update_packages(&self, changed: &[PackageRecord], deleted: &[String]) -> Result<(), StoreError>;

    /// Returns the health and the uses of all tools with a recorded check or use.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn health(&self) -> Result<BTreeMap<ToolKey, ToolHealth>, StoreError>;

    /// Returns the tools that a query selects, in its order.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn tools(&self, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError>;

    /// Records calls of a tool; see [`ToolHealth::record`]. Does nothing if the tool is not stored.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn record_calls(&self, tool: &ToolKey, calls: &CallRecord) -> Result<(), StoreError>;
}
