//! The store of logins.

use zeroize::Zeroizing;

use toolwit_core::{Error, ErrorKind, Phase};

/// A store of the logins of users at servers. The host implements it, because the library does not read or write files.
///
/// A key consists of ASCII letters, digits, `-`, `_` and `.`, at most 81 of them, and identifies a server by its name
/// and address. A login is one line of text that contains secrets: the store must keep other users from reading it.
pub trait LoginStore: Send + Sync {
    /// Returns a login, or `None` if no login is stored under this key.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn login(&self, key: &str) -> Result<Option<Zeroizing<String>>, Error>;

    /// Stores a login. The login replaces an earlier one with the same key.
    ///
    /// # Errors
    /// If the login cannot be stored.
    fn store(&self, key: &str, login: &str) -> Result<(), Error>;

    /// Removes a login. Returns whether a login was stored under this key.
    ///
    /// # Errors
    /// If the login cannot be removed.
    fn remove(&self, key: &str) -> Result<bool, Error>;

    /// Waits until no other process renews this login. Other processes wait until the returned guard is dropped.
    ///
    /// The default implementation does not wait. Two processes can then use the same refresh token at the same time, and the
    /// issuer may end the login for this reason.
    ///
    /// # Errors
    /// If the login cannot be locked against other processes.
    fn begin_renewal(&self, key: &str) -> Result<Box<dyn Send>, Error> {
        let _ = key;
        Ok(Box::new(()))
    }
}

/// A store that is always empty and refuses to store a login.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogins;

impl LoginStore for NoLogins {
    fn login(&self, _key: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok(None)
    }

    fn store(&self, _key: &str, _login: &str) -> Result<(), Error> {
        let message = "the login cannot be stored: the client has no store of logins";
        Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("set one with `ClientOptions::with_logins`"))
    }

    fn remove(&self, _key: &str) -> Result<bool, Error> {
        Ok(false)
    }
}
