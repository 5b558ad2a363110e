//! Bearer tokens.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::rate_limit::RateLimit;
use crate::pending::PendingRequests;
use crate::principal::Principal;
use toolwit::{Error, ErrorKind, Phase};

/// Minimum length of a token, in characters. A shorter one could be guessed.
const TOKEN_CHARS_MIN: usize = 20;

/// Maximum memory of the requests of all callers that are not answered yet, in bytes.
const PENDING_BYTES_MAX: usize = 256 << 20;

/// The least of it that each caller can have: one request of the largest size.
const PENDING_BYTES_MIN: usize = 24 << 20;

/// A bearer token, and who presents it.
#[derive(Clone)]
pub struct AccessToken {
    /// Only the digest is kept.
    digest: blake3::Hash,
    principal: Principal,
    requests_per_minute: Option<u32>,
}

impl AccessToken {
    /// Creates a token that authorises a principal.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if it is shorter than 20 characters, or cannot be sent in a header.
    pub fn new(token: &str, principal: Principal) -> Result<Self, Error> {
        let refused = |reason: String| {
            let message = format!("the token of `{}` {reason}", principal.name());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("make one with `openssl rand -base64 32`")
        };
        if token.len() < TOKEN_CHARS_MIN {
            return Err(refused(format!(
                "has {} characters; it needs {TOKEN_CHARS_MIN}",
                token.len()
            )));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("has characters that a header cannot carry".to_owned()));
        }
        Ok(Self {
            digest: blake3::hash(token.as_bytes()),
            principal,
            requests_per_minute: None,
        })
    }

    /// Limits the requests with this token.
    #[must_use]
    pub fn with_requests_per_minute(mut self, requests: u32) -> Self {
        self.requests_per_minute = Some(requests);
        self
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// Who makes a request, and how often it may.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) principal: Arc<Principal>,
    pub(super) rate: Arc<RateLimit>,
    pub(super) pending: Arc<PendingRequests>,
}

/// The tokens of a server.
pub(super) struct Tokens {
    callers: Vec<(blake3::Hash, Caller)>,
    /// Who makes requests without a token, if the server has no tokens.
    anonymous: Option<Caller>,
}

impl Tokens {
    /// Without tokens, all requests are those of `local`.
    ///
    /// Each caller can have the same share of the connections and of the memory of requests, so that no caller keeps the others out.
    pub(super) fn new(
        tokens: &[AccessToken],
        local: &Principal,
        requests_per_minute: u32,
        connections_max: usize,
    ) -> Self {
        let callers = tokens.len().max(1);
        let number_max = (connections_max / callers).max(1);
        let memory_bytes_max = (PENDING_BYTES_MAX / callers).max(PENDING_BYTES_MIN);
        let caller = |principal: &Principal, requests: u32| Caller {
            principal: Arc::new(principal.clone()),
            rate: Arc::new(RateLimit::per_minute(requests)),
            pending: Arc::new(PendingRequests::new(number_max, memory_bytes_max)),
        };
        let callers = tokens.iter().map(|token| {
            let requests = token.requests_per_minute.unwrap_or(requests_per_minute);
            (token.digest, caller(&token.principal, requests))
        });
        Self {
            callers: callers.collect(),
            anonymous: tokens.is_empty().then(|| caller(local, requests_per_minute)),
        }
    }

    /// Returns the number of callers.
    pub(super) fn len(&self) -> usize {
        self.callers.len().max(1)
    }

    /// Returns who makes a request. `None` if its token is missing or unknown.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Option<&Caller> {
        if self.anonymous.is_some() {
            return self.anonymous.as_ref();
        }
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let digest = blake3::hash(token.trim().as_bytes());
        // Every token is compared, in constant time, so that the time reveals nothing about them.
        self.callers.iter().fold(
            None,
            |found, (known, caller)| if *known == digest { Some(caller) } else { found },
        )
    }
}
