//! What a host remembers between processes: packages and their tools, how well they worked, values that plugins keep.
//!
//! Everything about packages can be read anew from their directories, so that a lost or damaged store costs time and
//! nothing else. [`MemoryStore`] keeps nothing beyond the process; `SqliteStore` (feature `store`) is one file that several
//! processes share. All calls block: make them where blocking is allowed.

mod error;
mod memory;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
mod told;

pub use error::StoreError;
pub use memory::MemoryStore;
pub use record::{CheckOutcome, CheckStage, HealthState, PackageRecord, ToolHealth, ToolKey, ToolRecord};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use told::{DynamicToolsRecord, ToldTools};

use std::collections::BTreeMap;

/// What a host remembers.
pub trait Store: ToldTools {
    /// Returns all packages with their tools, by path.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError>;

    /// Puts packages in the place of those at their paths, and forgets those at `gone`, all or nothing.
    ///
    /// A tool keeps its health as long as the bytes of its package stay the same. What plugins told that no package is of any
    /// more is forgotten.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn update_packages(&self, changed: &[PackageRecord], gone: &[String]) -> Result<(), StoreError>;

    /// Returns how well tools worked. Tools that were never tried are left out.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn health(&self) -> Result<BTreeMap<ToolKey, ToolHealth>, StoreError>;

    /// Records that a tool was tried at a time, in milliseconds since 1970. A success heals.
    ///
    /// # Errors
    /// When the store cannot be written. A tool that no package has is passed over.
    fn record_check(
        &self,
        tool: &ToolKey,
        stage: CheckStage,
        outcome: &CheckOutcome,
        at_ms: u64,
    ) -> Result<(), StoreError>;
}
