//! The access token of a user who has logged in.

use std::sync::{self, Arc, PoisonError};

use http::HeaderValue;
use tokio::sync::Mutex;
use url::Url;
use zeroize::{Zeroize, Zeroizing};

use super::authorization_server::{AuthorizationServer, ClientAuthentication, TokenEndpoint, is_same_issuer};
use super::challenge::Challenge;
use super::resource::{ProtectedResource, default_identifier};
use super::token_request::{AccessToken, ClientIdentity, Form, IssuedTokens, TokenRequestError};
use super::token_source::TokenFailure;
use crate::login::{LoginSlot, StoredLogin};
use crate::value::Redaction;

/// The error code with which an issuer refuses a refresh token.
const INVALID_GRANT: &str = "invalid_grant";

/// The reason why there is no token, if there is no login.
const NO_LOGIN: &str = "it requires a login";

/// The configuration of a login. A stored login must match the configured issuer and client id.
pub(crate) struct LoginSettings {
    pub(crate) issuer: Option<Url>,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<Zeroizing<String>>,
}

/// Provides the access token of a user, from the stored login. Renews the token with the refresh token of the login, in
/// one process at a time.
///
/// If another process has stored a newer login, it is used when the current token expires or the server refuses it.
pub(crate) struct LoginTokens {
    server: Url,
    slot: LoginSlot,
    settings: LoginSettings,
    redaction: Redaction,
    state: Mutex<LoginState>,
    /// The reason why the last request for a token failed, or `None` if it succeeded.
    failure: sync::Mutex<Option<TokenFailure>>,
}

#[derive(Default)]
struct LoginState {
    /// Whether the stored login was read.
    is_login_read: bool,
    /// `None` if the user has not logged in.
    current: Option<CurrentLogin>,
    /// The token endpoint of the issuer. `None` until it is first needed.
    endpoint: Option<TokenEndpoint>,
}

/// The login in use.
struct CurrentLogin {
    login: StoredLogin,
    token: AccessToken,
    /// Whether the login has new tokens that must still be stored.
    is_unstored: bool,
}

impl LoginTokens {
    pub(crate) fn new(server: Url, slot: LoginSlot, settings: LoginSettings, redaction: Redaction) -> Self {
        Self {
            server,
            slot,
            settings,
            redaction,
            state: Mutex::default(),
            failure: sync::Mutex::default(),
        }
    }

    /// Returns the value of the header `Authorization`. `None` if the user has not logged in.
    pub(super) async fn header(self: &Arc<Self>) -> Result<Option<HeaderValue>, TokenFailure> {
        self.fresh_header(None).await
    }

    /// Returns a new header after the server has refused a request with a challenge. `refused_header` is the header of
    /// this request, if it had one.
    pub(super) async fn answer_challenge(
        self: &Arc<Self>,
        refused_header: Option<HeaderValue>,
        challenge: Challenge,
    ) -> Result<HeaderValue, TokenFailure> {
        let renewed = self.fresh_header(Some((refused_header, challenge))).await?;
        renewed.ok_or_else(|| TokenFailure::login_required(NO_LOGIN))
    }

    /// Records and returns the failure of a request whose renewed token the server has refused, too.
    pub(super) fn record_second_refusal(&self, challenge: &Challenge) -> TokenFailure {
        let failure = if challenge.has_insufficient_scope {
            self.scope_failure(challenge)
        } else {
            TokenFailure::login_required("it refuses the tokens of its login")
        };
        self.set_failure(Some(failure.clone()));
        failure
    }

    /// Returns the reason why the last request for a token failed, or `None` if it succeeded.
    pub(super) fn failure(&self) -> Option<TokenFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_failure(&self, failure: Option<TokenFailure>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Returns the header of a fresh token, and renews the token if necessary. `None` if the user has not logged in. If
    /// the caller is cancelled, the renewal continues and a new refresh token is stored.
    async fn fresh_header(
        self: &Arc<Self>,
        refusal: Option<(Option<HeaderValue>, Challenge)>,
    ) -> Result<Option<HeaderValue>, TokenFailure> {
        let tokens = self.clone();
        let task = tokio::spawn(async move {
            let mut state = tokens.state.lock().await;
            tokens.current_header(&mut state, refusal).await
        });
        let renewed = task.await;
        let renewed = renewed.unwrap_or_else(|_| Err(TokenFailure::from("the token request ended".to_owned())));
        self.set_failure(renewed.as_ref().err().cloned());
        renewed
    }

    /// Returns the header of the current token. Renews the token first if it has expired or the server has refused it.
    async fn current_header(
        &self,
        state: &mut LoginState,
        refusal: Option<(Option<HeaderValue>, Challenge)>,
    ) -> Result<Option<HeaderValue>, TokenFailure> {
        if let Some(current) = state.current.as_mut().filter(|current| current.is_unstored) {
            self.store(current).await?;
        }
        if refusal.is_none() && !state.is_login_read {
            state.current = self.read_stored().await?;
            state.is_login_read = true;
        }
        let current = state.current.as_ref();
        let Some((refused_header, challenge)) = refusal else {
            return match current {
                None => Ok(None),
                Some(current) if current.token.is_fresh() => Ok(Some(current.token.header.clone())),
                Some(_) => self.renew(state).await.map(Some),
            };
        };
        if let Some(current) = current {
            if refused_header.as_ref() != Some(&current.token.header) {
                // A concurrent request has already renewed the token.
                return Ok(Some(current.token.header.clone()));
            }
            self.check_challenge(&current.login, &challenge).await?;
        }
        self.renew(state).await.map(Some)
    }

    /// Checks that a new token of a login could satisfy a challenge.
    async fn check_challenge(&self, login: &StoredLogin, challenge: &Challenge) -> Result<(), TokenFailure> {
        if challenge.has_insufficient_scope {
            return Err(self.scope_failure(challenge));
        }
        let Some(url) = &challenge.resource_metadata else {
            return Ok(());
        };
        let login_failure = |why: String| TokenFailure::login_required(why);
        let issuer =
            Url::parse(&login.issuer).map_err(|_| login_failure("its login has no valid issuer".to_owned()))?;
        // If the metadata cannot be read, the failure is not a login failure: another login would not help.
        let identifier = match ProtectedResource::discover(&self.server, Some(url), &self.redaction).await? {
            Some(resource) => {
                resource.check_issuer(&issuer, &self.redaction).map_err(login_failure)?;
                resource.identifier
            }
            None => default_identifier(&self.server),
        };
        if identifier != login.resource {
            return Err(login_failure(format!(
                "its resource identifier is now `{}`, and its login is for `{}`",
                self.redaction.quoted(&identifier),
                self.redaction.quoted(&login.resource)
            )));
        }
        Ok(())
    }

    /// Reads the stored login. If it is newer than the current login and its token is fresh, uses this token. Otherwise,
    /// requests a token with its refresh token.
    async fn renew(&self, state: &mut LoginState) -> Result<HeaderValue, TokenFailure> {
        // The guard is held until the new login is stored.
        let _renewal = self.slot.begin_renewal().await?;
        let Some(stored) = self.read_stored().await? else {
            state.current = None;
            return Err(TokenFailure::login_required(NO_LOGIN));
        };
        let previous = state.current.replace(stored);
        let Some(current) = &mut state.current else {
            return Err(TokenFailure::login_required(NO_LOGIN));
        };
        let is_newer = previous.is_none_or(|previous| previous.token.header != current.token.header);
        if is_newer && current.token.is_fresh() {
            return Ok(current.token.header.clone());
        }
        let Some(refresh_token) = current.login.refresh_token.clone().map(Zeroizing::new) else {
            return Err(TokenFailure::login_required("its login has expired"));
        };
        let endpoint = match state.endpoint.take() {
            Some(endpoint) => endpoint,
            None => self.request_endpoint(&current.login).await?,
        };
        let endpoint = state.endpoint.insert(endpoint);
        let form = Form::grant("refresh_token")
            .with("refresh_token", &refresh_token)
            .with("resource", &current.login.resource);
        let client = self.client_identity(&current.login);
        let issued_tokens = client.request_tokens(endpoint, form, &self.redaction).await;
        let issued_tokens = issued_tokens.map_err(|error| match error {
            TokenRequestError::Refused(code) if code == INVALID_GRANT => {
                TokenFailure::login_required("its issuer has ended the login")
            }
            error => TokenFailure::from(error.to_string()),
        })?;
        replace_tokens(&mut current.login, &issued_tokens);
        current.is_unstored = true;
        let token = issued_tokens
            .access_token
            .and_then(|token| AccessToken::new(&token, issued_tokens.validity));
        // A response without a usable token may still have replaced the refresh token.
        self.store(current).await?;
        current.token = token?;
        Ok(current.token.header.clone())
    }

    async fn store(&self, current: &mut CurrentLogin) -> Result<(), TokenFailure> {
        let store_result = self.slot.write(&current.login).await;
        store_result.map_err(|why| TokenFailure::from(format!("the renewed login is not stored: {why}")))?;
        current.is_unstored = false;
        Ok(())
    }

    /// Reads the stored login, and adds its secrets to the redaction. `None` if the user has not logged in.
    ///
    /// # Errors
    /// If the login cannot be read, is for another issuer or client than the configured one, or has an unusable token.
    async fn read_stored(&self) -> Result<Option<CurrentLogin>, TokenFailure> {
        let Some(login) = self.slot.read().await? else {
            return Ok(None);
        };
        let settings = &self.settings;
        let is_issuer = |issuer: &Url| is_same_issuer(&login.issuer, issuer);
        let is_client = |client: &String| *client == login.client_id;
        if !settings.issuer.as_ref().is_none_or(is_issuer) || !settings.client_id.as_ref().is_none_or(is_client) {
            let why = "its login is for another issuer or client than the configured one";
            return Err(TokenFailure::login_required(why));
        }
        login.secrets().for_each(|secret| self.redaction.add_token(secret));
        let token = AccessToken::new(&login.access_token, login.validity())?;
        Ok(Some(CurrentLogin {
            login,
            token,
            is_unstored: false,
        }))
    }

    async fn request_endpoint(&self, login: &StoredLogin) -> Result<TokenEndpoint, TokenFailure> {
        let issuer = Url::parse(&login.issuer);
        let issuer = issuer.map_err(|_| TokenFailure::login_required("its login has no valid issuer"))?;
        let server = AuthorizationServer::request_metadata(&issuer, &self.redaction).await?;
        let mut endpoint = server.token_endpoint()?;
        let method_name = login.client_authentication.as_deref();
        if let Some(method) = method_name.and_then(ClientAuthentication::from_name) {
            endpoint.authentication = method;
        }
        Ok(endpoint)
    }

    /// Returns the failure for a login that lacks the scopes of a challenge.
    fn scope_failure(&self, challenge: &Challenge) -> TokenFailure {
        let scopes = self.redaction.quoted(&challenge.scopes.join(" "));
        let why = format!("it requires the scopes `{scopes}`, which its login does not have");
        // A scope that contains a secret is not suggested for a login.
        let suggested_scopes = challenge
            .scopes
            .iter()
            .filter(|scope| !self.redaction.applies_to(scope));
        TokenFailure {
            why,
            login_scopes: Some(suggested_scopes.cloned().collect()),
        }
    }

    fn client_identity(&self, login: &StoredLogin) -> ClientIdentity {
        let registered_secret = login.client_secret.clone().map(Zeroizing::new);
        ClientIdentity {
            id: login.client_id.clone(),
            secret: self.settings.client_secret.clone().or(registered_secret),
        }
    }
}

/// Replaces the tokens of a login with issued tokens. The login keeps its access token if no usable access token was
/// issued, and its refresh token if no refresh token was issued.
fn replace_tokens(login: &mut StoredLogin, issued_tokens: &IssuedTokens) {
    if let Ok(token) = &issued_tokens.access_token {
        login.access_token.zeroize();
        login.access_token.push_str(token);
        login.set_validity(issued_tokens.validity);
    }
    if let Some(token) = &issued_tokens.refresh_token {
        login.refresh_token.zeroize();
        login.refresh_token = Some(token.as_str().to_owned());
    }
    if let Some(scopes) = &issued_tokens.scopes {
        login.scopes.clone_from(scopes);
    }
}
