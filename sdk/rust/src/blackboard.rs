//! Objects that the tools of a conversation share. Access needs the grant `--blackboard read` or `--blackboard read-write`.

use serde::Serialize;

use crate::{Artifact, HostError, host};

/// An object on the blackboard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name, if it has one.
    pub name: Option<String>,
    /// The object.
    pub artifact: Artifact,
}

/// Returns the object with a name. `None` if it does not exist or reading is not granted.
#[must_use]
pub fn get(name: &str) -> Option<Artifact> {
    host::blackboard_get(name)
}

/// Adds an object with a name.
///
/// # Errors
///
/// [`HostError`] if the value has no form in JSON, writing is not granted, or the blackboard is full.
pub fn put<T: Serialize + ?Sized>(name: &str, kind: &str, value: &T) -> Result<(), HostError> {
    host::blackboard_put(Some(name), Artifact::new(kind, value)?).map_err(HostError::Refused)
}

/// Adds an object without a name.
///
/// # Errors
///
/// Those of [`put`].
pub fn append<T: Serialize + ?Sized>(kind: &str, value: &T) -> Result<(), HostError> {
    host::blackboard_put(None, Artifact::new(kind, value)?).map_err(HostError::Refused)
}

/// Lists the objects, oldest first. The list is empty if reading is not granted.
#[must_use]
pub fn list() -> Vec<Entry> {
    let entry = |(name, artifact)| Entry { name, artifact };
    host::blackboard_list().into_iter().map(entry).collect()
}
