//! The cache of the keys of an issuer. Keys are requested when they are needed.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

use super::signed_token::SignedToken;
use super::signing_key::SigningKey;
use toolwit::mcp::AuthorizationServer;

/// The age at which keys are requested again.
const AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// The age up to which keys are used if their issuer cannot be reached.
const STALE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The minimum time between two requests to an issuer, even if clients send tokens with unknown keys.
const INTERVAL_MIN: Duration = Duration::from_secs(30);

/// The keys of an issuer.
pub(super) struct KeyCache {
    /// The configured address of the issuer.
    address: Url,
    keys: Arc<RwLock<Option<Arc<IssuerKeys>>>>,
    requests: Mutex<KeyRequests>,
}

/// The requests for keys. At most one request runs at a time.
#[derive(Default)]
struct KeyRequests {
    /// When the last request began.
    last: Option<Instant>,
    /// The running request, which continues if no token waits for it.
    running: JoinSet<()>,
}

/// The keys that an issuer publishes.
pub(super) struct IssuerKeys {
    /// The issuer, as its metadata and its tokens state it.
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
    /// Returns the key of a token: the key with the id that the token states, or without an id, the only key of the
    /// algorithm.
    pub(super) fn key(&self, token: &SignedToken<'_>) -> Option<&SigningKey> {
        let mut candidates = self.keys.iter().filter(|key| key.algorithm() == token.algorithm);
        match &token.key_id {
            Some(id) => candidates.find(|key| key.id.as_ref() == Some(id)),
            None => {
                let only = candidates.next();
                only.filter(|_| candidates.next().is_none())
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

    /// Returns whether `stated` is this issuer. Slashes at the end are ignored, because only the metadata of the issuer
    /// has the exact form.
    pub(super) fn is_issuer(&self, stated: &str) -> bool {
        stated.trim_end_matches('/') == self.address.as_str().trim_end_matches('/')
    }

    /// Returns keys of the issuer that contain the key of a token. Requests the keys if the cached keys are too old, or
    /// lack the key.
    ///
    /// # Errors
    /// [`KeyError::Unknown`] if the newest keys lack the key, and [`KeyError::Unavailable`] if the cache has no recent
    /// keys.
    pub(super) async fn keys_for(&self, token: &SignedToken<'_>) -> Result<Arc<IssuerKeys>, KeyError> {
        let has_key = |keys: &Arc<IssuerKeys>| keys.requested_at.elapsed() < STALE_MAX && keys.key(token).is_some();
        let usable = self.cached_keys().filter(has_key);
        if let Some(keys) = usable.as_ref().filter(|keys| keys.requested_at.elapsed() < AGE_MAX) {
            return Ok(keys.clone());
        }
        match usable {
            // Only one token waits while cached keys are requested again. The others use the cached keys.
            Some(keys) => match self.requests.try_lock() {
                Ok(mut requests) => self.request(&mut requests).await,
                Err(_) => return Ok(keys),
            },
            None => {
                let mut requests = self.requests.lock().await;
                self.request(&mut requests).await;
            }
        }
        match self.cached_keys() {
            Some(keys) if has_key(&keys) => Ok(keys),
            Some(keys) if keys.requested_at.elapsed() < STALE_MAX => Err(KeyError::Unknown),
            _ => Err(KeyError::Unavailable),
        }
    }

    fn cached_keys(&self) -> Option<Arc<IssuerKeys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests the keys, unless the last request began less than [`INTERVAL_MIN`] ago. Then waits for the running
    /// request.
    async fn request(&self, requests: &mut KeyRequests) {
        if requests.last.is_none_or(|last| last.elapsed() >= INTERVAL_MIN) {
            requests.last = Some(Instant::now());
            let (address, keys) = (self.address.clone(), self.keys.clone());
            requests.running.spawn(async move {
                match IssuerKeys::request(&address).await {
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
    async fn request(address: &Url) -> Result<Self, toolwit::Error> {
        let server = AuthorizationServer::discover(address).await?;
        let keys = server.signing_keys().await?;
        Ok(Self {
            issuer: server.issuer().to_owned(),
            keys: keys.iter().filter_map(SigningKey::parse).collect(),
            requested_at: Instant::now(),
        })
    }
}
