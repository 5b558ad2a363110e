//! The access token of a connection.

use std::sync::Arc;

use http::HeaderValue;

use super::challenge::Challenge;
use super::client_tokens::ClientTokens;
use super::login_tokens::LoginTokens;

/// Obtains and renews the access token of a connection.
#[derive(Clone)]
pub(crate) enum TokenSource {
    /// Obtains tokens with the credentials of the client.
    Client(Arc<ClientTokens>),
    /// Uses the login of a user, if there is one.
    Login(Arc<LoginTokens>),
}

/// The reason why a connection has no token that the server accepts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{why}", if login_scopes.is_some() { "" } else { "a token cannot be obtained: " })]
pub(crate) struct TokenFailure {
    pub(crate) why: String,
    /// The additional scopes for which the user must log in. `None` if a login would not help.
    pub(crate) login_scopes: Option<Vec<String>>,
}

impl TokenFailure {
    /// Creates a failure that a login can resolve, without additional scopes.
    pub(super) fn login_required(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            login_scopes: Some(Vec::new()),
        }
    }
}

impl From<String> for TokenFailure {
    fn from(why: String) -> Self {
        Self {
            why,
            login_scopes: None,
        }
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

    /// Returns a new header after the server has refused a request with a challenge. `refused_header` is the header of
    /// this request, if it had one.
    ///
    /// # Errors
    /// If the server requires a scope that the client may not request, or the reason why there is no token.
    pub(crate) async fn answer_challenge(
        &self,
        refused_header: Option<HeaderValue>,
        challenge: Challenge,
    ) -> Result<HeaderValue, TokenFailure> {
        match (self, refused_header) {
            (Self::Client(tokens), Some(refused_header)) => {
                Ok(tokens.answer_challenge(refused_header, challenge).await?)
            }
            (Self::Client(tokens), None) => Ok(tokens.header().await?),
            (Self::Login(tokens), refused_header) => tokens.answer_challenge(refused_header, challenge).await,
        }
    }

    /// Records and returns the failure of a request whose renewed token the server has refused, too. Returns `None` with
    /// the credentials of a client: the caller then uses the server's response.
    pub(crate) fn record_second_refusal(&self, challenge: &Challenge) -> Option<TokenFailure> {
        match self {
            Self::Client(_) => None,
            Self::Login(tokens) => Some(tokens.record_second_refusal(challenge)),
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
