//! The catalogs of all principals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::catalog::Catalog;
use crate::principal::Principal;

/// The newest catalog of each group of principals. The principals of a group have the same tools.
#[derive(Default)]
pub(super) struct Catalogs {
    catalogs: Mutex<HashMap<String, Arc<Catalog>>>,
}

impl Catalogs {
    /// Returns the catalog of a principal. Builds the catalog again if the packages of the host have changed.
    pub(super) fn of(&self, principal: &Principal) -> Arc<Catalog> {
        let packages = principal.host().registry();
        let cached = self.lock().get(principal.group()).cloned();
        match cached.filter(|catalog| catalog.packages.is_same(&packages)) {
            Some(catalog) => catalog,
            None => {
                let catalog = Arc::new(Catalog::of(principal));
                self.lock().insert(principal.group().to_owned(), catalog.clone());
                catalog
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Catalog>>> {
        self.catalogs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
