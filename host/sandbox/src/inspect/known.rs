//! What is known of a component, made of its text when somebody asks: most packages of a large directory are never asked for.

use std::sync::Arc;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::declared::DeclaredCapabilities;
use super::dynamic_tools::DynamicTools;
use super::footprint::Footprint;
use super::inspection::{Facts, Inspection};
use super::kept::tells_tools;
use super::profile::Profile;
use crate::values::types::Shape;

/// What was kept of an inspection, by [`Inspection::to_cache_text`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CachedInspection {
    /// SHA-256 of the component.
    pub digest: String,
    /// How many tools it has.
    pub tool_count: usize,
    /// The text.
    pub text: String,
}

impl CachedInspection {
    /// Puts together what was kept.
    #[must_use]
    pub fn new(digest: impl Into<String>, tool_count: usize, text: impl Into<String>) -> Self {
        Self {
            digest: digest.into(),
            tool_count,
            text: text.into(),
        }
    }
}

/// What is known of a component, read or yet to be read from what was kept.
pub(crate) struct Known {
    digest: Box<str>,
    tool_count: usize,
    /// Taken when it is read.
    kept: Mutex<Option<String>>,
    inspection: OnceLock<Arc<Inspection>>,
    declared: OnceLock<DeclaredCapabilities>,
}

impl Known {
    pub(crate) fn read(inspection: Inspection) -> Self {
        Self {
            digest: inspection.digest.as_str().into(),
            tool_count: inspection.tools.len(),
            kept: Mutex::default(),
            inspection: OnceLock::from(Arc::new(inspection)),
            declared: OnceLock::new(),
        }
    }

    pub(crate) fn kept(kept: CachedInspection) -> Self {
        Self {
            digest: kept.digest.into(),
            tool_count: kept.tool_count,
            kept: Mutex::new(Some(kept.text)),
            inspection: OnceLock::new(),
            declared: OnceLock::new(),
        }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub(crate) fn tool_count(&self) -> usize {
        self.tool_count
    }

    /// Returns whether the component has dynamic tools. Cached text is not parsed for that.
    pub(crate) fn dynamic_tools(&self) -> DynamicTools {
        if let Some(inspection) = self.inspection.get() {
            return inspection.dynamic_tools();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(text) if tells_tools(text) => DynamicTools::Discovered,
            Some(_) => DynamicTools::None,
            // It is being read at this moment, which takes microseconds.
            None => self.inspection.wait().dynamic_tools(),
        }
    }

    /// Returns the inspection, for a plugin of this name. Takes tens of microseconds when it is the first time.
    pub(crate) fn inspection(&self, plugin: &str) -> &Arc<Inspection> {
        self.inspection.get_or_init(|| {
            let text = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
            let restored = text.and_then(|text| Inspection::from_cache_text(&text, plugin));
            let inspection = restored.filter(|inspection| *inspection.digest == *self.digest);
            Arc::new(inspection.unwrap_or_else(|| {
                // Who kept it made sure that it is whole; a component of which nothing is known has no tools.
                tracing::error!(plugin, "what was kept of the component cannot be read");
                Inspection::assemble(nothing(&self.digest), Shape::default(), plugin)
            }))
        })
    }

    pub(crate) fn declared(&self, plugin: &str) -> &DeclaredCapabilities {
        self.declared.get_or_init(|| {
            let imports = self.inspection(plugin).imports.iter();
            DeclaredCapabilities::from_imports(imports.map(|import| import.name.as_str()))
        })
    }
}

fn nothing(digest: &str) -> Facts {
    Facts {
        digest: digest.to_owned(),
        size_bytes: 0,
        profile: Profile::Plain,
        imports: Vec::new(),
        footprint: Footprint::default(),
    }
}
