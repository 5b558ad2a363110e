//! A registry that can be refreshed when its directories have changed.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use crate::catalog::EmbeddingModel;
use crate::registry::Registry;
use crate::scan::{MissingPath, Scan, ScannedFiles};
use crate::store::Store;
use toolwit_core::Error;
use toolwit_sandbox::Runtime;

/// The current [`Registry`] of plugin directories. Clones share its state.
///
/// Earlier snapshots stay valid: a tool of a replaced package continues to use the old version. Subscribers are notified once
/// for each change of the packages, however many file system events caused it.
#[derive(Clone)]
pub struct LiveRegistry {
    pub(crate) inner: Arc<LiveState>,
}

/// The state that the clones of a [`LiveRegistry`] share.
pub(crate) struct LiveState {
    /// `None` for a registry without directories, which never changes.
    scan: Option<Scan>,
    pub(crate) current: watch::Sender<Registry>,
    /// The files of the last scan. The lock is held during a scan, because concurrent scans could publish their results out of order.
    pub(crate) files: Mutex<ScannedFiles>,
    /// Held during a discovery, so that concurrent discoveries do not run the same plugin twice.
    pub(crate) discovery_lock: Mutex<()>,
}

/// The result of [`LiveRegistry::refresh`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshOutcome {
    /// Whether a package was added, changed or removed.
    pub is_changed: bool,
    /// Whether a file is still being written, so that another refresh is needed soon.
    pub is_unsettled: bool,
}

impl LiveRegistry {
    /// Scans directories and component files, as [`Registry::scan_into`] does. With an embedding model, the search also finds
    /// tools by their meaning.
    ///
    /// # Errors
    /// Those of [`Registry::scan_into`]. `missing` decides whether a missing path is an error.
    pub async fn open(
        runtime: &Arc<Runtime>,
        paths: &[PathBuf],
        missing: MissingPath,
        store: Arc<dyn Store>,
        embedding_model: Option<Arc<dyn EmbeddingModel>>,
    ) -> Result<Self, Error> {
        let scan = Scan::new(runtime.clone(), paths.to_vec(), missing, store, embedding_model);
        let (registry, files) = scan.first_scan().await?;
        Ok(Self::from_parts(registry, Some(scan), files))
    }

    fn from_parts(registry: Registry, scan: Option<Scan>, files: ScannedFiles) -> Self {
        let state = LiveState {
            scan,
            current: watch::Sender::new(registry),
            files: Mutex::new(files),
            discovery_lock: Mutex::default(),
        };
        Self { inner: Arc::new(state) }
    }

    /// Returns the current snapshot.
    #[must_use]
    pub fn current(&self) -> Registry {
        self.inner.current.borrow().clone()
    }

    /// Returns a receiver of the current snapshot. It is notified once for each change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Registry> {
        self.inner.current.subscribe()
    }

    /// Scans the directories again and publishes the changes. Unchanged files are not read.
    ///
    /// A package whose component is being written is not reported as broken: its earlier state stays until the component is valid,
    /// or has not been modified for two seconds.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if a directory that exists cannot be read.
    pub async fn refresh(&self) -> Result<RefreshOutcome, Error> {
        let Some(scan) = &self.inner.scan else {
            return Ok(RefreshOutcome::default());
        };
        let mut files = self.inner.files.lock().await;
        let rescan = scan.rescan(&self.current(), &files).await?;
        *files = rescan.files;
        let is_changed = rescan.registry.is_some();
        if let Some(registry) = rescan.registry {
            self.inner.current.send_replace(registry);
        }
        Ok(RefreshOutcome {
            is_changed,
            is_unsettled: rescan.is_unsettled,
        })
    }

    /// Returns whether the registry has no directories and never changes.
    pub(crate) fn is_fixed(&self) -> bool {
        self.inner.scan.is_none()
    }

    /// Returns the scanned paths: directories and component files. The list is empty for a registry that never changes.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        self.inner.scan.as_ref().map_or(&[], Scan::paths)
    }
}

impl From<Registry> for LiveRegistry {
    /// Creates a registry that never changes.
    fn from(registry: Registry) -> Self {
        Self::from_parts(registry, None, ScannedFiles::new())
    }
}
