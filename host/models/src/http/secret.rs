//! The key of a provider, which is not shown in logs.

use std::fmt;
use std::sync::Arc;

const REDACTED: &str = "[redacted]";

/// A provider's key. It does not appear in `Debug` output, logs or errors.
///
/// ```
/// use toolwit_models::Secret;
///
/// assert_eq!(format!("{:?}", Secret::new("sk-123")), "Secret([redacted])");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a secret from a key. White space around the key is removed.
    #[must_use]
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().into())
    }

    /// Returns the key, for the header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the key in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        text.replace(&*self.0, REDACTED)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({REDACTED})")
    }
}
