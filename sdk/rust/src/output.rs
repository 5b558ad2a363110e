//! Output to the user during a call. It needs no grant.

use serde::Serialize;

use crate::{Artifact, HostError, host};

/// Reports progress. The text is shown while the call runs.
pub fn progress(text: impl AsRef<str>) {
    host::progress(text.as_ref());
}

/// Sends a message to the user.
pub fn communicate(text: impl AsRef<str>) {
    host::communicate(text.as_ref());
}

/// Adds an object to the result of the call, also if the function returns a plain value.
///
/// ```
/// toolwit_guest::output::attach("invoice", &("i-17", 420))?;
/// # Ok::<(), toolwit_guest::HostError>(())
/// ```
///
/// # Errors
///
/// [`HostError`] if the value has no form in JSON, or the limit for artifacts is exceeded.
pub fn attach<T: Serialize + ?Sized>(kind: &str, value: &T) -> Result<(), HostError> {
    host::attach(Artifact::new(kind, value)?).map_err(HostError::Refused)
}
