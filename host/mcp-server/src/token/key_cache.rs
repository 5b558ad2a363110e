//! The cache of the keys of an issuer. Keys are requested when a token needs them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

use super::signed_token::SignedToken;
use super::signing_key::SigningKey;
use toolwit::mcp::AuthorizationServer;

/// The age at which cached keys are requested again.
const FRESH_MAX: Duration = Duration::from_secs(60 * 60);

/// The age up to which cached keys are used if their issuer cannot be reached.
const STALE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The minimum time between two requests to an issuer, even if clients send tokens with unknown keys.
const REQUEST_INTERVAL_MIN: Duration = Duration::from_secs(30);

/// An issuer, and the cache of its keys.
pub(super) struct KeyCache {
    /// The configured address of the issuer.
    address: Url,
    /// The newest keys; `None` before the first successful request.
    keys: Arc<RwLock<Option<Arc<IssuerKeys>>>>,
    requests: Mutex<KeyRequests>,
}

/// The requests for keys. At most one request runs at a time.
#[derive(Default)]
struct KeyRequests {
    /// The time when the last request began.
    last_begin: Option<Instant>,
    /// The running request. It continues if the verification that began it is cancelled.
    running: JoinSet<()>,
}

/// The keys that an issuer publishes.
pub(super) struct IssuerKeys {
    /// The issuer, as its metadata states it. Its tokens must state the same text.
    pub(super) issuer: String,
    keys: Vec<SigningKey>,
    requested_at: Instant,
}

/// The reason why there is no key for a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// The issuer does not have the key.
    Unknown,
    /// The keys of the issuer cannot be requested, and the cache has no recent keys.
    Unavailable,
}

impl IssuerKeys {
    /// Returns the key for the algorithm and the key id that a token states. If the token states no key id, returns the
    /// only key for the algorithm, or `None` if there are several.
    pub(super) fn key(&self, token: &SignedToken<'_>) -> Option<&SigningKey> {
        let mut candidates = self.keys.iter().filter(|key| key.algorithm() == token.algorithm);
        match &token.key_id {
            Some(id) => candidates.find(|key| key.id.as_ref() == Some(id)),
            None => {
                let first = candidates.next();
                first.filter(|_| candidates.next().is_none())
            }
        }
    }
}

impl KeyCache {
    pub(super) fn new(address: Url) -> Self {
        Self {
            address,
            keys: Arc::default(),
            requests: Mutex::default(),
        }
    }

    /// Returns whether a token states this issuer. Slashes at the end are ignored: the exact text is not the configured
    /// address, but [`IssuerKeys::issuer`], with which the claims are compared later.
    pub(super) fn is_issuer(&self, stated_issuer: &str) -> bool {
        stated_issuer.trim_end_matches('/') == self.address.as_str().trim_end_matches('/')
    }

    /// Returns the keys of the issuer, which contain the key of `token`. Requests the keys if the cached keys are too old
    /// or do not contain the key.
    ///
    /// # Errors
    /// [`KeyError::Unknown`] if the newest keys do not contain the key, and [`KeyError::Unavailable`] if the cache has no
    /// keys, or only keys older than [`STALE_MAX`].
    pub(super) async fn keys_for(&self, token: &SignedToken<'_>) -> Result<Arc<IssuerKeys>, KeyError> {
        let is_usable = |keys: &Arc<IssuerKeys>| keys.requested_at.elapsed() < STALE_MAX && keys.key(token).is_some();
        let usable_keys = self.cached_keys().filter(is_usable);
        let fresh_keys = usable_keys
            .as_ref()
            .filter(|keys| keys.requested_at.elapsed() < FRESH_MAX);
        if let Some(keys) = fresh_keys {
            return Ok(keys.clone());
        }
        match usable_keys {
            // One verification requests the keys again. Concurrent verifications use the cached keys.
            Some(keys) => match self.requests.try_lock() {
                Ok(mut requests) => self.refresh(&mut requests).await,
                Err(_) => return Ok(keys),
            },
            None => {
                let mut requests = self.requests.lock().await;
                self.refresh(&mut requests).await;
            }
        }
        match self.cached_keys() {
            Some(keys) if is_usable(&keys) => Ok(keys),
            Some(keys) if keys.requested_at.elapsed() < STALE_MAX => Err(KeyError::Unknown),
            _ => Err(KeyError::Unavailable),
        }
    }

    fn cached_keys(&self) -> Option<Arc<IssuerKeys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts a request for the keys, unless the last request began less than [`REQUEST_INTERVAL_MIN`] ago. Then waits
    /// until no request runs.
    async fn refresh(&self, requests: &mut KeyRequests) {
        if requests
            .last_begin
            .is_none_or(|begin| begin.elapsed() >= REQUEST_INTERVAL_MIN)
        {
            requests.last_begin = Some(Instant::now());
            let (address, keys) = (self.address.clone(), self.keys.clone());
            requests.running.spawn(async move {
                match IssuerKeys::fetch(&address).await {
                    Ok(new) => *keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new)),
                    Err(error) => {
                        tracing::warn!(%error, issuer = %address, "the keys of an issuer cannot be requested")
                    }
                }
            });
        }
        while requests.running.join_next().await.is_some() {}
    }
}

impl IssuerKeys {
    /// Requests the metadata of an issuer, and then its keys.
    async fn fetch(address: &Url) -> Result<Self, toolwit::Error> {
        let server = AuthorizationServer::discover(address).await?;
        let keys = server.signing_keys().await?;
        Ok(Self {
            issuer: server.issuer().to_owned(),
            keys: keys.iter().filter_map(SigningKey::parse).collect(),
            requested_at: Instant::now(),
        })
    }
}
