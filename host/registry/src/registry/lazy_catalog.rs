//! A search index that is built when it is first used.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::catalog::Catalog;

/// A function that builds a search index.
type BuildFunction = Box<dyn FnOnce() -> Catalog + Send>;

/// A search index that is built when it is first used. A host can serve tools before the index exists.
pub(crate) struct LazyCatalog {
    catalog: OnceLock<Catalog>,
    /// The function that builds the index. `None` as soon as it has been called.
    build: Mutex<Option<BuildFunction>>,
}

impl LazyCatalog {
    /// Creates an index. `build` is called when the index is first used.
    pub(crate) fn new(build: impl FnOnce() -> Catalog + Send + 'static) -> Self {
        Self {
            catalog: OnceLock::new(),
            build: Mutex::new(Some(Box::new(build))),
        }
    }

    /// Returns the index. The first call builds it; concurrent calls wait until it is built.
    pub(crate) fn get(&self) -> &Catalog {
        self.catalog.get_or_init(|| {
            let build = self.build.lock().unwrap_or_else(PoisonError::into_inner).take();
            // `None` if an earlier call of `build` panicked. The index is then empty.
            build.map(|build| build()).unwrap_or_default()
        })
    }
}

impl From<Catalog> for LazyCatalog {
    fn from(catalog: Catalog) -> Self {
        Self {
            catalog: OnceLock::from(catalog),
            build: Mutex::default(),
        }
    }
}

impl fmt::Debug for LazyCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyCatalog").field(&self.catalog.get()).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::catalog::Document;

    #[test]
    fn an_index_is_built_once_and_on_first_use() {
        let build_count = Arc::new(AtomicUsize::new(0));
        let counter = build_count.clone();
        let catalog = LazyCatalog::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut catalog = Catalog::new();
            catalog.put("web.wasm", [Document::new("web#scrape", "scrape", "Scrapes a website")]);
            catalog
        });
        assert_eq!(build_count.load(Ordering::Relaxed), 0);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| catalog.get().len())).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 1));
        });
        assert_eq!(build_count.load(Ordering::Relaxed), 1);
    }
}
