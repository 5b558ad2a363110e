//! Bearer tokens that the operator configures.

use std::fmt;

use crate::principal::Principal;
use toolwit::{Error, ErrorKind, Phase};

/// Minimum length of a token, in characters. A shorter token could be guessed.
const TOKEN_CHARS_MIN: usize = 20;

/// A configured bearer token, and the principal of the requests with this token.
#[derive(Clone)]
pub struct AccessToken {
    /// The digest of the token. The token itself is not stored.
    digest: blake3::Hash,
    principal: Principal,
    requests_per_minute: Option<u32>,
}

impl AccessToken {
    /// Creates a token for the requests of a principal.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the token is shorter than 20 characters, or cannot be sent in a header.
    pub fn new(token: &str, principal: Principal) -> Result<Self, Error> {
        let refused = |reason: String| {
            let message = format!("the token of `{}` {reason}", principal.name());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("create a token with `openssl rand -base64 32`")
        };
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("has characters that are not allowed in a header".to_owned()));
        }
        // The length in bytes is the number of characters, because all characters are ASCII.
        if token.len() < TOKEN_CHARS_MIN {
            return Err(refused(format!(
                "has {} characters; it needs at least {TOKEN_CHARS_MIN}",
                token.len()
            )));
        }
        Ok(Self {
            digest: blake3::hash(token.as_bytes()),
            principal,
            requests_per_minute: None,
        })
    }

    /// Sets the maximum number of requests per minute with this token.
    #[must_use]
    pub fn with_requests_per_minute(mut self, requests: u32) -> Self {
        self.requests_per_minute = Some(requests);
        self
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn digest(&self) -> blake3::Hash {
        self.digest
    }

    pub(super) fn requests_per_minute(&self) -> Option<u32> {
        self.requests_per_minute
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
