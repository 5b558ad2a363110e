//! A registry that keeps up with its directories.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::listing::MissingPath;
use super::scan::{Scan, SeenFiles};
use super::view::Registry;
use crate::store::Store;
use toolwit_core::Error;
use toolwit_sandbox::Runtime;

/// The newest [`Registry`] of some places. Clones share it.
///
/// What it gave before stays as it was: who holds a tool of a package that was replaced goes on with the old one. Each
/// real change of the packages is one change here, however many events of the file system it took.
#[derive(Clone)]
pub struct LiveRegistry {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    /// `None` for a registry that never changes.
    scan: Option<Scan>,
    pub(super) current: watch::Sender<Registry>,
    /// What was read of the files. One look at a time: two would publish out of order.
    pub(super) seen: Mutex<SeenFiles>,
    /// Held while plugins are asked, so that nobody asks twice.
    pub(super) asking: Mutex<()>,
}

/// What a look at the directories found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefreshOutcome {
    /// Whether a package came, changed or went.
    pub is_changed: bool,
    /// Whether a file is still being written: look again soon.
    pub is_unsettled: bool,
}

impl LiveRegistry {
    /// Reads the packages of some places, as [`Registry::scan_into`] does.
    ///
    /// # Errors
    /// Those of [`Registry::scan_into`]; what it means that a place is not there, `absent` says.
    pub async fn open(
        runtime: &Arc<Runtime>,
        places: &[PathBuf],
        absent: MissingPath,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let scan = Scan::new(runtime.clone(), places.to_vec(), absent, store);
        let (first, seen) = scan.first().await?;
        Ok(Self::of(first, Some(scan), seen))
    }

    fn of(first: Registry, scan: Option<Scan>, seen: SeenFiles) -> Self {
        let inner = Inner {
            scan,
            current: watch::Sender::new(first),
            seen: Mutex::new(seen),
            asking: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns what is known now.
    #[must_use]
    pub fn current(&self) -> Registry {
        self.inner.current.borrow().clone()
    }

    /// Returns a receiver that is woken once for each real change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Registry> {
        self.inner.current.subscribe()
    }

    /// Looks at the directories again, and takes over what changed. Files that are as they were are not read.
    ///
    /// A file that is being written is not believed to be broken: what was known of it stays until it is whole, or was left
    /// alone for a while.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) when a directory is there and cannot be read.
    pub async fn refresh(&self) -> Result<RefreshOutcome, Error> {
        let Some(scan) = &self.inner.scan else {
            return Ok(RefreshOutcome::default());
        };
        let mut seen = self.inner.seen.lock().await;
        let another = scan.again(&self.current(), &seen).await?;
        *seen = another.seen;
        let is_changed = another.registry.is_some();
        if let Some(registry) = another.registry {
            self.inner.current.send_replace(registry);
        }
        Ok(RefreshOutcome {
            is_changed,
            is_unsettled: another.is_unsettled,
        })
    }

    /// Tells whether it stays as it is.
    pub(super) fn is_fixed(&self) -> bool {
        self.inner.scan.is_none()
    }

    /// Returns the directories and files that it looks at.
    #[must_use]
    pub fn places(&self) -> &[PathBuf] {
        self.inner.scan.as_ref().map_or(&[], Scan::places)
    }
}

impl From<Registry> for LiveRegistry {
    /// A registry that stays as it is.
    fn from(registry: Registry) -> Self {
        Self::of(registry, None, SeenFiles::new())
    }
}
