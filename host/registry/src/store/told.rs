//! What plugins told of their tools when they were asked.

use super::StoreError;

/// Keeps the tools that plugins tell only when they run. They belong to a plugin's name and the bytes of its component: other
/// bytes, or the same under another name and so under other grants, are asked anew. They do not belong to the grants and
/// settings under which they were told: when these change, `toolwit refresh` asks again.
pub trait ToldTools: Send + Sync {
    /// Returns what a plugin of these bytes told, as text for whoever wrote it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn dynamic_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError>;

    /// Keeps what plugins told, each in the place of what it told before, all or nothing. It is forgotten when
    /// [`Store::update_packages`](super::Store::update_packages) finds that no package is theirs any more.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn save_dynamic_tools(&self, told: &[DynamicToolsRecord]) -> Result<(), StoreError>;
}

/// What a plugin told of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicToolsRecord {
    /// The plugin's name.
    pub plugin: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// What it told, as text for whoever wrote it.
    pub told: String,
}
