//! The stored login of one server.

use std::sync::Arc;

use url::Url;

use super::login_store::LoginStore;
use super::stored_login::StoredLogin;
use toolwit_core::text::sha256;
use toolwit_core::{Error, ErrorKind, Phase};

/// The number of characters of the digest of an address in a key.
const DIGEST_CHARS: usize = 16;

/// The stored login of one server. Servers with the same name and different addresses have different logins.
#[derive(Clone)]
pub(crate) struct LoginSlot {
    store: Arc<dyn LoginStore>,
    key: Arc<str>,
    server_url: Arc<str>,
}

impl LoginSlot {
    pub(crate) fn new(store: Arc<dyn LoginStore>, name: &str, url: &Url) -> Self {
        let digest = sha256(url.as_str());
        let digest = digest.get(..DIGEST_CHARS).unwrap_or(&digest);
        Self {
            store,
            key: format!("{digest}-{name}").into(),
            server_url: url.as_str().into(),
        }
    }

    /// Returns the login. `None` if no login is stored, or if the stored login is for another address.
    ///
    /// # Errors
    /// The reason why the login cannot be read.
    pub(crate) async fn read(&self) -> Result<Option<StoredLogin>, String> {
        let key = self.key.clone();
        let text = self.access_store(move |store| store.login(&key)).await?;
        let login = text.map(|text| StoredLogin::parse(&text)).transpose()?;
        Ok(login.filter(|login| *login.server == *self.server_url))
    }

    /// Stores the login.
    ///
    /// # Errors
    /// The reason why the login cannot be stored.
    pub(crate) async fn write(&self, login: &StoredLogin) -> Result<(), String> {
        let (key, text) = (self.key.clone(), login.to_text()?);
        self.access_store(move |store| store.store(&key, &text)).await
    }

    /// Removes the login. Returns whether a login was stored.
    ///
    /// # Errors
    /// The reason why the login cannot be removed.
    pub(crate) async fn remove(&self) -> Result<bool, String> {
        let key = self.key.clone();
        self.access_store(move |store| store.remove(&key)).await
    }

    /// Waits until no other process renews the login. Other processes wait until the returned guard is dropped.
    ///
    /// # Errors
    /// The reason why the login cannot be locked.
    pub(crate) async fn begin_renewal(&self) -> Result<Box<dyn Send>, String> {
        let key = self.key.clone();
        self.access_store(move |store| store.begin_renewal(&key)).await
    }

    /// Runs an access to the store on a thread for blocking calls.
    async fn access_store<T: Send + 'static>(
        &self,
        access: impl FnOnce(&dyn LoginStore) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, String> {
        let store = self.store.clone();
        let result = tokio::task::spawn_blocking(move || access(&*store)).await;
        let interruption_error = || {
            Error::new(
                ErrorKind::Io,
                Phase::Registry,
                "the access to the store of logins was interrupted",
            )
        };
        result
            .unwrap_or_else(|_| Err(interruption_error()))
            .map_err(|error| error.message.clone())
    }
}
