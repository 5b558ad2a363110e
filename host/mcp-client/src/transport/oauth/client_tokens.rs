//! The access token of an OAuth client whose credentials are configured, without a login of a user.

use std::collections::BTreeSet;
use std::sync::{self, Arc, PoisonError};

use http::HeaderValue;
use tokio::sync::Mutex;
use url::Url;
use zeroize::Zeroizing;

use super::authorization_server::{AuthorizationServer, TokenEndpoint};
use super::challenge::Challenge;
use super::resource::resource_identifier;
use super::token_request::{AccessToken, ClientIdentity, Form};
use crate::value::Redaction;

/// Stores a new refresh token, with which the issuer replaced the previous refresh token. The error is the reason why
/// the token is not stored.
type OnRotation = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The credentials of a client at its issuer.
pub(crate) struct OauthCredentials {
    pub(crate) issuer: Url,
    pub(crate) client: ClientIdentity,
    pub(crate) refresh_token: Option<Zeroizing<String>>,
    /// The scopes of each token request.
    pub(crate) scopes: Vec<String>,
    /// The additional scopes that are requested after the server has required them.
    pub(crate) step_up_scopes: Vec<String>,
}

/// Obtains and renews the access token of a connection. Concurrent requests share one token request.
pub(crate) struct ClientTokens {
    server: Url,
    credentials: OauthCredentials,
    redaction: Redaction,
    on_rotation: OnRotation,
    state: Mutex<TokenState>,
    /// The reason why the last request for a token failed, or `None` if it succeeded.
    failure: sync::Mutex<Option<String>>,
}

/// The current token, and the cached data of its issuer.
#[derive(Default)]
struct TokenState {
    token: Option<AccessToken>,
    /// The newest refresh token, if the issuer has replaced the configured refresh token.
    newest_refresh_token: Option<Zeroizing<String>>,
    /// Whether `newest_refresh_token` must still be stored.
    is_refresh_token_unstored: bool,
    /// The scopes of `step_up_scopes` that the server has required.
    required_step_up_scopes: BTreeSet<String>,
    /// The resource identifier of the server. `None` until it is first needed.
    resource: Option<String>,
    /// The token endpoint of the issuer. `None` until it is first needed.
    endpoint: Option<TokenEndpoint>,
}

impl ClientTokens {
    /// Creates the source of the tokens for a server. Issued tokens are added to `redaction`. A new refresh token is
    /// passed to `on_rotation`. While `on_rotation` fails, no access token is returned, because a refresh token that is
    /// not stored is lost when the process ends.
    pub(crate) fn new(
        server: Url,
        credentials: OauthCredentials,
        redaction: Redaction,
        on_rotation: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            server,
            credentials,
            redaction,
            on_rotation: Box::new(on_rotation),
            state: Mutex::default(),
            failure: sync::Mutex::default(),
        }
    }

    /// Returns the value of the header `Authorization`.
    ///
    /// # Errors
    /// The reason why there is no token.
    pub(crate) async fn header(self: &Arc<Self>) -> Result<HeaderValue, String> {
        self.fresh_header(None).await
    }

    /// Returns a new header after the server has refused a request with a challenge. `refused_header` is the header of
    /// this request.
    ///
    /// # Errors
    /// If the server requires a scope that is not configured, or the reason why there is no token.
    pub(crate) async fn answer_challenge(
        self: &Arc<Self>,
        refused_header: HeaderValue,
        challenge: Challenge,
    ) -> Result<HeaderValue, String> {
        self.fresh_header(Some((refused_header, challenge))).await
    }

    /// Returns the reason why the last request for a token failed, or `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the header of a fresh token, and requests a token if necessary. If the caller is cancelled, the request
    /// continues, and a new refresh token is stored.
    async fn fresh_header(self: &Arc<Self>, refusal: Option<(HeaderValue, Challenge)>) -> Result<HeaderValue, String> {
        let tokens = self.clone();
        let task = tokio::spawn(async move {
            let mut state = tokens.state.lock().await;
            if let Some((refused_header, challenge)) = refusal {
                tokens.handle_refusal(&mut state, &refused_header, &challenge).await?;
            }
            let token = match state.token.take().filter(AccessToken::is_fresh) {
                Some(token) => Ok(token),
                None => tokens.request_token(&mut state).await,
            };
            // A response without a usable token may still have replaced the refresh token.
            let store_result = tokens.store_refresh_token(&mut state);
            let header = state.token.insert(token?).header.clone();
            store_result.map(|()| header)
        });
        let renewed = task.await.unwrap_or_else(|_| Err("the token request ended".to_owned()));
        let failure = renewed.as_ref().err().cloned();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        renewed
    }

    /// Removes a token that the server refused, and adds the scopes that the server requires to later token requests.
    ///
    /// # Errors
    /// If a new token of the client would not satisfy the challenge, or the metadata of the server cannot be used.
    async fn handle_refusal(
        &self,
        state: &mut TokenState,
        refused_header: &HeaderValue,
        challenge: &Challenge,
    ) -> Result<(), String> {
        let current_token = state.token.as_ref();
        let is_current = current_token.is_some_and(|token| token.header == *refused_header);
        if !is_current {
            // A concurrent request has already renewed the token.
            return Ok(());
        }
        let is_requested =
            |scope: &String| self.credentials.scopes.contains(scope) || state.required_step_up_scopes.contains(scope);
        let missing_scopes: Vec<String> = challenge
            .scopes
            .iter()
            .filter(|scope| !is_requested(scope))
            .cloned()
            .collect();
        if let Some(scope) = missing_scopes
            .iter()
            .find(|scope| !self.credentials.step_up_scopes.contains(scope))
        {
            let scope = self.redaction.quoted(scope);
            return Err(format!(
                "the server requires the scope `{scope}`, which `step_up_scopes` does not have"
            ));
        }
        if challenge.has_insufficient_scope && missing_scopes.is_empty() {
            return Err("the issuer grants fewer scopes than the server requires".to_owned());
        }
        if let Some(url) = &challenge.resource_metadata {
            let identifier =
                resource_identifier(&self.server, &self.credentials.issuer, Some(url), &self.redaction).await?;
            state.resource = Some(identifier);
        }
        state.required_step_up_scopes.extend(missing_scopes);
        state.token = None;
        Ok(())
    }

    /// Requests a token from the issuer.
    async fn request_token(&self, state: &mut TokenState) -> Result<AccessToken, String> {
        let issuer = &self.credentials.issuer;
        if state.resource.is_none() {
            state.resource = Some(resource_identifier(&self.server, issuer, None, &self.redaction).await?);
        }
        let endpoint = match state.endpoint.take() {
            Some(endpoint) => endpoint,
            None => AuthorizationServer::request_metadata(issuer, &self.redaction)
                .await?
                .token_endpoint()?,
        };
        let endpoint = state.endpoint.insert(endpoint).clone();
        let credentials = &self.credentials;
        let mut form = match state
            .newest_refresh_token
            .as_ref()
            .or(credentials.refresh_token.as_ref())
        {
            Some(token) => Form::grant("refresh_token").with("refresh_token", token),
            None => Form::grant("client_credentials"),
        };
        if let Some(resource) = &state.resource {
            form = form.with("resource", resource);
        }
        let scopes = credentials.scopes.iter().chain(&state.required_step_up_scopes);
        let scopes: Vec<&str> = scopes.map(String::as_str).collect();
        if !scopes.is_empty() {
            form = form.with("scope", &scopes.join(" "));
        }
        let issued_tokens = credentials
            .client
            .request_tokens(&endpoint, form, &self.redaction)
            .await;
        let issued_tokens = issued_tokens.map_err(|error| error.to_string())?;
        if let Some(token) = issued_tokens.refresh_token {
            let previous = state
                .newest_refresh_token
                .as_ref()
                .or(credentials.refresh_token.as_ref());
            // Without a previous refresh token, the client uses its own credentials, and ignores the new refresh token.
            if previous.is_some_and(|previous| *previous != token) {
                state.newest_refresh_token = Some(token);
                state.is_refresh_token_unstored = true;
            }
        }
        AccessToken::new(&issued_tokens.access_token?, issued_tokens.validity)
    }

    /// Stores the newest refresh token, if it is not stored yet. After a failure, the next call tries again.
    fn store_refresh_token(&self, state: &mut TokenState) -> Result<(), String> {
        let newest = state.newest_refresh_token.as_ref();
        if let Some(token) = newest.filter(|_| state.is_refresh_token_unstored) {
            let store_result = (self.on_rotation)(token);
            store_result.map_err(|why| format!("the new refresh token is not stored: {why}"))?;
            state.is_refresh_token_unstored = false;
        }
        Ok(())
    }
}
