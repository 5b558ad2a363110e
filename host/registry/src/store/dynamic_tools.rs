//! Storage of discovered dynamic tools.

use super::StoreError;

/// Stores the dynamic tools of plugins, by plugin name and component digest. The name is part of the key, because under
/// another name, a component may have other grants and list other tools.
///
/// A change of grants or settings does not invalidate the stored tools; see
/// [`LiveRegistry::discover_dynamic_tools`](crate::LiveRegistry::discover_dynamic_tools).
pub trait DynamicToolsStore: Send + Sync {
    /// Returns the stored tools of a plugin, in the format of the sandbox, or `None` if none were stored.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the stored tools of these plugins in one transaction.
    /// [`Store::update_packages`](super::Store::update_packages) deletes those that do not belong to a package.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn save_dynamic_tools(&self, records: &[DynamicToolsRecord]) -> Result<(), StoreError>;
}

/// The discovered dynamic tools of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicToolsRecord {
    /// The plugin's name.
    pub plugin: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// The tools, in the format of the sandbox.
    pub tools: String,
}
