//! Storage of discovered dynamic tools.

use super::StoreError;

/// Storage of the dynamic tools of plugins, by plugin name and component digest. The name is part of the key, because the
/// same component may have other grants under another name, and therefore list other tools.
///
/// A change of grants or settings does not invalidate the stored tools; see
/// [`LiveRegistry::discover_dynamic_tools`](crate::LiveRegistry::discover_dynamic_tools).
pub trait DynamicToolsStore: Send + Sync {
    /// Returns the stored tools of a plugin, as JSON for
    /// [`Inspection::with_discovered_tools`](toolwit_sandbox::Inspection::with_discovered_tools). `None` if no tools are
    /// stored.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the stored tools of these plugins in one transaction.
    /// [`Store::update_packages`](super::Store::update_packages) deletes tools that do not belong to a stored package.
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
    /// SHA-256 of the plugin's component, in hex.
    pub digest: String,
    /// The tools, as JSON from [`Inspection::discovered_tools`](toolwit_sandbox::Inspection::discovered_tools).
    pub tools: String,
}
