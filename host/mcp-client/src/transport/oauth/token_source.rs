//! The access token of a connection.

use std::sync::Arc;

use http::HeaderValue;

use super::challenge::Challenge;
use super::client_tokens::ClientTokens;
use super::login_tokens::LoginTokens;

/// The source of the access token of a connection, which obtains and renews the token.
#[derive(Clone)]
pub(crate) enum TokenSource {
    /// Obtains tokens with the credentials of the client.
    Client(Arc<ClientTokens>),
    /// Uses the login of a user, if there is one.
    Login(Arc<LoginTokens>),
}

/// The reason why a connection has no token that the server accepts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{why}", if login.is_some() { "" } else { "a token cannot be obtained: " })]
pub(crate) struct TokenFailure {
    pub(crate) why: String,
    /// The additional scopes that a login needs. `None` if a login would not help.
    pub(crate) login: Option<Vec<String>>,
}

impl TokenFailure {
    /// Creates a failure that a login can resolve, without additional scopes.
    pub(super) fn login(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            login: Some(Vec::new()),
        }
    }
}

impl From<String> for TokenFailure {
    fn from(why: String) -> Self {
        Self { why, login: None }
    }
}

impl TokenSource {
    /// Returns the value of the header `Authorization`. `None` if the user has not logged in.
    ///
    /// # Errors
    /// The reason why there is no token.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, TokenFailure> {
        match self {
            Self::Client(tokens) => Ok(Some(tokens.header().await?)),
            Self::Login(tokens) => tokens.header().await,
        }
    }

    /// Returns a new header after the server has refused a header, or a request without a header, with a challenge.
    ///
    /// # Errors
    /// If the server requires a scope that the client may not request, or the reason why there is no token.
    pub(crate) async fn answer_challenge(
        &self,
        refused: Option<HeaderValue>,
        challenge: Challenge,
    ) -> Result<HeaderValue, TokenFailure> {
        match (self, refused) {
            (Self::Client(tokens), Some(refused)) => Ok(tokens.answer_challenge(refused, challenge).await?),
            (Self::Client(tokens), None) => Ok(tokens.header().await?),
            (Self::Login(tokens), refused) => tokens.answer_challenge(refused, challenge).await,
        }
    }

    /// Returns the failure of a request after its renewed token was refused, too. `None` for the credentials of a
    /// client, because a login would not help.
    pub(crate) fn refused_again(&self, challenge: &Challenge) -> Option<TokenFailure> {
        match self {
            Self::Client(_) => None,
            Self::Login(tokens) => Some(tokens.refused_again(challenge)),
        }
    }

    /// Returns the reason why the last request for a token failed, or `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<TokenFailure> {
        match self {
            Self::Client(tokens) => tokens.failure().map(TokenFailure::from),
            Self::Login(tokens) => tokens.failure(),
        }
    }
}
