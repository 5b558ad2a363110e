//! Errors of a store.

/// A failure of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer version of this program wrote the store.
    #[error("the store has version {found}, but this program supports versions up to {supported}")]
    Newer {
        /// The store's version.
        found: i64,
        /// The newest version that this program supports.
        supported: i64,
    },
    /// The file is not a Toolwit store. It was not changed.
    #[error("it is not a Toolwit store; it was not changed")]
    Foreign,
    /// The store's file or its directory could not be created, or a damaged store could not be renamed.
    #[error("the store's file or its directory could not be created, or a damaged store could not be renamed")]
    File(#[source] std::io::Error),
    /// The database failed.
    #[cfg(feature = "sqlite")]
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
}
