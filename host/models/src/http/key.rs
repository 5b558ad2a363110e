//! The key of a provider and the header that carries it.

use std::fmt;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::secret::Secret;
use toolwit_agent::model::ModelError;

/// The header that carries a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHeader {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// A header with this name, such as `api-key`, and the key as its value.
    Named(&'static str),
}

/// A function that returns the current key. It is called when a client is built, and before each request, so that a key can be
/// rotated while the client is in use.
#[derive(Clone)]
pub(crate) struct KeySource(Arc<dyn Fn() -> Option<Secret> + Send + Sync>);

impl KeySource {
    pub(crate) fn new(read_key: impl Fn() -> Option<Secret> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read_key))
    }

    /// Returns the current key, if there is one.
    pub(crate) fn read(&self) -> Option<Secret> {
        (self.0)()
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySource")
    }
}

impl KeyHeader {
    /// Returns the name and the value of the header that carries a key.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the name or the key is not valid in a header.
    pub(super) fn name_and_value(self, key: &Secret) -> Result<(HeaderName, HeaderValue), ModelError> {
        let key = Some(key.expose()).filter(|key| !key.is_empty());
        let (name, text) = match self {
            Self::Bearer => (AUTHORIZATION, key.map(|key| format!("Bearer {key}"))),
            Self::Named(name) => {
                let name = HeaderName::try_from(name).map_err(|_| ModelError::Configuration {
                    message: format!("`{name}` is not a valid header name"),
                    suggestion: "use a name such as `api-key`".to_owned(),
                })?;
                (name, key.map(str::to_owned))
            }
        };
        let value = text.and_then(|text| HeaderValue::from_str(&text).ok());
        let mut value = value.ok_or_else(|| ModelError::Configuration {
            message: "the key is empty, or has characters that are not allowed in an HTTP header".to_owned(),
            suggestion: "copy the key again: it is a single line of printable characters".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}
