//! Errors of adding packages.

use std::path::PathBuf;

use toolwit_core::limits::ByteCount;
use toolwit_core::{Error, ErrorKind, Phase};

/// An error of [`Installation::run`](super::Installation::run). Packages may have been written before an [`AddError::Failed`], but
/// not before any other error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The source contains no component.
    #[error("there is no component in {}", .0.display())]
    NoComponent(PathBuf),
    /// The directory already has a package with this name, or with a name that has the same form in tool names, such as `My-Tool`
    /// and `my_tool`.
    #[error("there is a package `{name}` already, in {}", path.display())]
    NameTaken {
        /// The earlier package's name.
        name: String,
        /// The earlier package's component.
        path: PathBuf,
    },
    /// The source is the name of a package in the index, but no index is set.
    #[error("there is no file or directory `{0}`, and no package index is configured")]
    NoIndex(String),
    /// The index does not list the package.
    #[error("the package index `{index}` does not list `{name}`")]
    NotInIndex {
        /// The name.
        name: String,
        /// The URL of the index.
        index: String,
    },
    /// The index lists the package, but no version of it that the query accepts. A query without a version accepts no
    /// pre-releases.
    #[error("the package index has no {} of `{name}`", version.as_ref().map_or_else(
        || "release".to_owned(),
        |version| format!("version `{version}`"),
    ))]
    NoVersion {
        /// The name.
        name: String,
        /// The requirement for the version, if the query has one.
        version: Option<String>,
        /// The listed versions, from the oldest to the newest.
        versions: Vec<String>,
    },
    /// The source is a URL without a digest, so its content cannot be checked.
    #[error("the URL `{url}` has no digest; its content has {} and the SHA-256 digest {digest}", ByteCount(*size_bytes))]
    Unpinned {
        /// The URL.
        url: String,
        /// SHA-256 of the content, in hex.
        digest: String,
        /// The size of the content, in bytes.
        size_bytes: u64,
    },
    /// The content at the URL does not have the expected digest.
    #[error("`{url}` has the SHA-256 digest {actual} instead of {expected}")]
    WrongDigest {
        /// The URL.
        url: String,
        /// The expected digest.
        expected: String,
        /// The digest of the content.
        actual: String,
    },
    /// The content at a URL does not have the size that the index lists.
    #[error("`{url}` has {} instead of the listed {}", ByteCount(*actual_bytes), ByteCount(*listed_bytes))]
    WrongSize {
        /// The URL.
        url: String,
        /// The size in the index, in bytes.
        listed_bytes: u64,
        /// The size of the content, in bytes.
        actual_bytes: u64,
    },
    /// The version in the package's manifest is not the version that the index lists.
    #[error("the package index lists `{name}` {listed}, but its manifest has the version {declared}")]
    OtherVersion {
        /// The name.
        name: String,
        /// The version in the index.
        listed: String,
        /// The version in the manifest.
        declared: String,
    },
    /// The newest version in the index that the query accepts is older than the installed version, which the query accepts too.
    #[error("`{name}` {installed} is newer than {newest}, the newest such version in the package index")]
    Downgrade {
        /// The name.
        name: String,
        /// The installed version.
        installed: String,
        /// The newest version in the index that the query accepts.
        newest: String,
    },
    /// Another failure. For example, a package of the source is broken; the index is invalid; or a file could not be downloaded,
    /// read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Self {
        let message = error.to_string();
        let suggestion = match error {
            AddError::Failed(error) => return error,
            AddError::NoComponent(_) => "name a component file or a directory of packages".to_owned(),
            AddError::NameTaken { .. } => "replace it with `NameConflict::Replace`".to_owned(),
            AddError::NoIndex(_) => "set an index with `Installation::index`, or name an existing file".to_owned(),
            AddError::NotInIndex { .. } => "check the name, or use another index".to_owned(),
            AddError::NoVersion { versions, .. } => format!("it lists {}", versions.join(", ")),
            AddError::Unpinned { url, digest, .. } => {
                format!("compare the digest with the one that its author publishes, then use `{url}#sha256={digest}`")
            }
            AddError::WrongDigest { .. } => {
                "the file or the connection was tampered with, or the file was replaced: ask its author".to_owned()
            }
            AddError::WrongSize { .. } | AddError::OtherVersion { .. } => {
                "report it to the maintainer of the index".to_owned()
            }
            AddError::Downgrade { name, newest, .. } => {
                format!("to replace it anyway, name the version: `{name}@{newest}`")
            }
        };
        Self::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion)
    }
}
