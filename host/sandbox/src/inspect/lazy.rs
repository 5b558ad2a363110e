//! An inspection that is parsed from its cached text on first use. Most packages of a large directory are never used, so parsing
//! every text at startup would waste time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::cached_inspection::{CachedInspection, cached_dynamic_tools};
use super::declared_capabilities::DeclaredCapabilities;
use super::dynamic_tools_state::DynamicToolsState;
use super::imports::Import;
use super::inspection::Inspection;

/// An inspection, or the cached text from which it is parsed on first use.
pub(crate) struct LazyInspection {
    digest: Box<str>,
    tool_count: usize,
    dynamic_tools_state: DynamicToolsState,
    /// The cached text. `None` after it has been parsed, and for an inspection that was not cached.
    text: Mutex<Option<String>>,
    inspection: OnceLock<Arc<Inspection>>,
    declared_capabilities: OnceLock<DeclaredCapabilities>,
}

impl LazyInspection {
    /// Wraps an inspection that was not cached.
    pub(crate) fn from_inspection(inspection: Inspection) -> Self {
        Self {
            digest: inspection.digest.as_str().into(),
            tool_count: inspection.tools.len(),
            dynamic_tools_state: inspection.dynamic_tools_state(),
            text: Mutex::default(),
            inspection: OnceLock::from(Arc::new(inspection)),
            declared_capabilities: OnceLock::new(),
        }
    }

    /// Wraps the cached text of an inspection, without parsing it.
    pub(crate) fn from_cache(cached: CachedInspection) -> Self {
        Self {
            digest: cached.digest.into(),
            tool_count: cached.tool_count,
            dynamic_tools_state: cached_dynamic_tools(&cached.text),
            text: Mutex::new(Some(cached.text)),
            inspection: OnceLock::new(),
            declared_capabilities: OnceLock::new(),
        }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub(crate) fn tool_count(&self) -> usize {
        self.tool_count
    }

    pub(crate) fn dynamic_tools_state(&self) -> DynamicToolsState {
        self.dynamic_tools_state
    }

    pub(crate) fn is_parsed(&self) -> bool {
        self.inspection.get().is_some()
    }

    /// Returns the inspection, for a plugin of this name. If the inspection was cached, the first call parses the text, which takes
    /// tens of microseconds.
    pub(crate) fn get(&self, plugin: &str) -> &Arc<Inspection> {
        self.inspection.get_or_init(|| {
            let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).take();
            let parsed = text.and_then(|text| Inspection::from_cache_text(&text, plugin));
            let inspection = parsed.filter(|inspection| *inspection.digest == *self.digest);
            Arc::new(inspection.unwrap_or_else(|| {
                // The registry verifies the hash of the text before use, so an unreadable text is a bug. The component then has no
                // tools.
                tracing::error!(plugin, "the cached inspection of the component is not readable");
                Inspection::empty(self.digest.to_string())
            }))
        })
    }

    /// Returns the capabilities that the component declares by its imports.
    pub(crate) fn declared_capabilities(&self, plugin: &str) -> &DeclaredCapabilities {
        self.declared_capabilities.get_or_init(|| {
            let imports = self.get(plugin).imports.iter();
            let names: Vec<_> = imports.flat_map(Import::declaring_names).collect();
            DeclaredCapabilities::from_imports(names.iter().map(String::as_str))
        })
    }
}
