//! What plugins told of their tools when they were asked.

use super::StoreError;

/// Keeps the tools that plugins tell only when they run. They belong to a plugin's name and the bytes of its component: other
/// bytes, or the same under another name and so under other grants, are asked anew.
pub trait ToldTools: Send + Sync {
    /// Returns what a plugin of these bytes told, as text for whoever wrote it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn told_tools(&self, plugin: &str, digest: &str) -> Result<Option<String>, StoreError>;

    /// Keeps what a plugin of these bytes told, in the place of what it told before. What belongs to no package any more is
    /// forgotten.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn keep_told_tools(&self, plugin: &str, digest: &str, told: &str) -> Result<(), StoreError>;
}
