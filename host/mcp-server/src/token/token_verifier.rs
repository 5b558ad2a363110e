//! The verification of the access token of a request.

use url::Url;

use super::claims::Claims;
use super::key_cache::{KeyCache, KeyError};
use super::signed_token::SignedToken;

/// Checks access tokens for one resource.
pub(crate) struct TokenVerifier {
    /// The identifier of this server. The audience of a token must contain it.
    resource: String,
    /// The accepted issuers, with their cached keys.
    issuers: Vec<KeyCache>,
}

/// The reason why an access token is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// The token is not valid.
    Invalid(&'static str),
    /// The token cannot be checked, because the keys of its issuer cannot be requested.
    Unavailable,
}

impl TokenVerifier {
    pub(crate) fn new(resource: String, issuers: Vec<Url>) -> Self {
        let issuers = issuers.into_iter().map(KeyCache::new).collect();
        Self { resource, issuers }
    }

    /// Verifies the signature and the claims of a token, and returns the claims.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub(crate) async fn verify(&self, text: &str) -> Result<Claims, TokenRefusal> {
        let token = SignedToken::parse(text).map_err(TokenRefusal::Invalid)?;
        let stated_issuer = token.stated_issuer();
        let stated_issuer = stated_issuer.ok_or(TokenRefusal::Invalid("its claims are invalid"))?;
        let issuer = self.issuers.iter().find(|issuer| issuer.is_issuer(&stated_issuer));
        let issuer = issuer.ok_or(TokenRefusal::Invalid("it is from another issuer"))?;
        let keys = issuer.keys_for(&token).await.map_err(|error| match error {
            KeyError::Unknown => TokenRefusal::Invalid("its key is unknown"),
            KeyError::Unavailable => TokenRefusal::Unavailable,
        })?;
        let key = keys.key(&token).ok_or(TokenRefusal::Invalid("its key is unknown"))?;
        let claims = token.verified_claims(key).map_err(TokenRefusal::Invalid)?;
        claims
            .check(&keys.issuer, &self.resource)
            .map_err(TokenRefusal::Invalid)?;
        Ok(claims)
    }
}
