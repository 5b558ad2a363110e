//! A key that no log shows.

use std::fmt;
use std::sync::Arc;

const REDACTED: &str = "[redacted]";

/// Holds a provider's key and shows it to nobody: not in `Debug`, a log or an error.
///
/// ```
/// use toolwit_models::Secret;
///
/// assert_eq!(format!("{:?}", Secret::new("sk-123")), "Secret([redacted])");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a key; white space around it, as files have it, is dropped.
    #[must_use]
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().into())
    }

    /// Returns the key, for the header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key wherever it stands in a text.
    pub(super) fn redact(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&*self.0, REDACTED),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({REDACTED})")
    }
}
