//! The source of secrets and environment variables.

use zeroize::Zeroizing;

use toolwit_core::{Error, ErrorKind, Phase};

/// Looks up the secrets and environment variables that the configuration of a server names. The library reads them
/// only through this trait.
pub trait ValueSource: Send + Sync {
    /// Returns a secret, or `None` if it does not exist.
    ///
    /// # Errors
    /// If the secrets cannot be read.
    fn secret(&self, name: &str) -> Result<Option<Zeroizing<String>>, Error>;

    /// Returns an environment variable of the host, or `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// Stores the new value of a secret whose value is a refresh token. Called after the issuer of the token has replaced
    /// it. The default implementation fails.
    ///
    /// # Errors
    /// If the value cannot be stored. Calls to the server then fail with the message of the error, which must not
    /// contain the value. Each call tries again to store the value. A value that is still not stored when the connection
    /// ends is lost.
    fn replace_secret(&self, name: &str, value: &str) -> Result<(), Error> {
        let _ = value;
        let message = format!("the secret `{name}` cannot be replaced: its source does not store values");
        Err(Error::new(ErrorKind::Configuration, Phase::Registry, message))
    }
}

/// A source without secrets and variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoValues;

impl ValueSource for NoValues {
    fn secret(&self, _name: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok(None)
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
