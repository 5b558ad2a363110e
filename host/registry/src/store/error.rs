//! Why a store cannot answer.

/// A failure of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer version of the program wrote the store.
    #[error("the store has version {found}, newer than {known}, which this program knows")]
    Newer {
        /// The store's version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The file is another program's, or was never a store.
    #[error("it is no store of Toolwit, and was left as it is")]
    Foreign,
    /// The store's directory could not be made.
    #[error("the directory of the store could not be made")]
    Directory(#[source] std::io::Error),
    /// The database failed.
    #[cfg(feature = "sqlite")]
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
}
