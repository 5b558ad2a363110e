//! The access token of a connection.

use std::collections::BTreeSet;
use std::sync::{self, Arc, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::challenge::Challenge;
use super::discovery::{self, ClientAuthentication, TokenEndpoint};
use super::exchange;
use crate::failure::quoted;
use crate::value::Redaction;

/// A token is renewed this long before it expires, so that it is valid when it arrives.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);

/// The longest validity that is believed. A token that ends later is renewed after this time.
const VALIDITY_MAX: Duration = Duration::from_hours(24);

/// The maximum length of an access token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Stores the refresh token that replaces the previous one. The error is the reason why it is not stored.
type OnRotation = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What the client shows to the issuer.
pub(crate) struct OauthCredentials {
    pub(crate) issuer: Url,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Zeroizing<String>>,
    pub(crate) refresh_token: Option<Zeroizing<String>>,
    /// The scopes of the first token.
    pub(crate) scopes: Vec<String>,
    /// The scopes that are requested in addition if the server requires them.
    pub(crate) step_up_scopes: Vec<String>,
}

/// Obtains and renews the access token of a connection. Concurrent requests share one token request.
pub(crate) struct TokenSource {
    server: Url,
    credentials: OauthCredentials,
    redaction: Redaction,
    on_rotation: OnRotation,
    state: Mutex<State>,
    /// The reason why there is no token.
    failure: sync::Mutex<Option<String>>,
}

/// The current token, and what is known of its issuer.
#[derive(Default)]
struct State {
    token: Option<AccessToken>,
    /// The refresh token that the issuer gave last.
    rotated: Option<Zeroizing<String>>,
    /// Whether that refresh token still has to be stored.
    is_unstored: bool,
    step_up: BTreeSet<String>,
    resource: Option<String>,
    endpoint: Option<TokenEndpoint>,
}

/// An access token.
struct AccessToken {
    header: HeaderValue,
    renewal: Instant,
}

/// The response to a token request.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
}

/// The response to a refused token request.
#[derive(Default, Deserialize)]
struct TokenRefusal {
    #[serde(default)]
    error: String,
}

impl TokenSource {
    /// Creates a source for a server. Tokens are redacted in what the server sends, and a new refresh token is passed to `on_rotation`.
    /// There is no token until that succeeds: the previous refresh token may be invalid, and the login would end with the process.
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
        self.renewed(None).await
    }

    /// Returns a header after the server has refused one with a challenge.
    ///
    /// # Errors
    /// If the server requires a scope that is not allowed, or the reason why there is no token.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        refused: HeaderValue,
        challenge: Challenge,
    ) -> Result<HeaderValue, String> {
        self.renewed(Some((refused, challenge))).await
    }

    /// Returns the reason why there is no token, if the last request failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Renews the token if necessary. A request that is cancelled does not lose a new refresh token: the task continues.
    async fn renewed(self: &Arc<Self>, refusal: Option<(HeaderValue, Challenge)>) -> Result<HeaderValue, String> {
        let source = self.clone();
        let task = tokio::spawn(async move {
            let mut state = source.state.lock().await;
            if let Some((refused, challenge)) = refusal {
                source.refuse(&mut state, &refused, &challenge).await?;
            }
            let token = match state.token.take().filter(|token| token.renewal > Instant::now()) {
                Some(token) => Ok(token),
                None => source.request(&mut state).await,
            };
            // A response without a usable token may still have replaced the refresh token.
            let stored = source.store(&mut state);
            let header = state.token.insert(token?).header.clone();
            stored.map(|()| header)
        });
        let renewed = task.await.unwrap_or_else(|_| Err("the token request ended".to_owned()));
        let failure = renewed.as_ref().err().cloned();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        renewed
    }

    /// Removes a token that the server refused, and adds the scopes that it requires.
    async fn refuse(&self, state: &mut State, refused: &HeaderValue, challenge: &Challenge) -> Result<(), String> {
        let is_current = state.token.as_ref().is_some_and(|token| token.header == *refused);
        if !is_current {
            // Another request has renewed it.
            return Ok(());
        }
        let has = |scope: &String| self.credentials.scopes.contains(scope) || state.step_up.contains(scope);
        let missing: Vec<String> = challenge.scopes.iter().filter(|scope| !has(scope)).cloned().collect();
        if let Some(scope) = missing
            .iter()
            .find(|scope| !self.credentials.step_up_scopes.contains(scope))
        {
            let scope = quoted(scope);
            return Err(format!(
                "the server requires the scope `{scope}`, which `step_up_scopes` does not have"
            ));
        }
        if challenge.is_insufficient_scope && missing.is_empty() {
            return Err("the issuer gives fewer scopes than the server requires".to_owned());
        }
        if let Some(url) = &challenge.resource_metadata {
            let resource = discovery::resource(&self.server, &self.credentials.issuer, Some(url)).await?;
            state.resource = Some(resource);
        }
        state.step_up.extend(missing);
        state.token = None;
        Ok(())
    }

    /// Requests a token from the issuer.
    async fn request(&self, state: &mut State) -> Result<AccessToken, String> {
        let issuer = &self.credentials.issuer;
        if state.resource.is_none() {
            state.resource = Some(discovery::resource(&self.server, issuer, None).await?);
        }
        let endpoint = match state.endpoint.take() {
            Some(endpoint) => endpoint,
            None => discovery::token_endpoint(issuer).await?,
        };
        let endpoint = state.endpoint.insert(endpoint).clone();
        let (form, basic) = self.form(state, endpoint.authentication);
        let (is_success, body) = exchange::post(&endpoint.url, form, basic).await?;
        let body = Zeroizing::new(body);
        if !is_success {
            let refusal: TokenRefusal = serde_json::from_slice(&body).unwrap_or_default();
            let code = if refusal.error.is_empty() {
                "no reason"
            } else {
                &refusal.error
            };
            return Err(format!("the issuer refused with `{}`", quoted(code)));
        }
        let response: TokenResponse =
            serde_json::from_slice(&body).map_err(|_| "the issuer's response is not a token".to_owned())?;
        self.accept(state, response)
    }

    /// Stores the refresh token that the issuer gave last, if it is not stored yet. A failure is repeated at the next call.
    fn store(&self, state: &mut State) -> Result<(), String> {
        if let Some(token) = state.rotated.as_ref().filter(|_| state.is_unstored) {
            let stored = (self.on_rotation)(token);
            stored.map_err(|why| format!("the new refresh token is not stored: {why}"))?;
            state.is_unstored = false;
        }
        Ok(())
    }

    /// Returns the form of a token request, and the name and password of the client.
    fn form(&self, state: &State, authentication: ClientAuthentication) -> (String, Option<(String, String)>) {
        let credentials = &self.credentials;
        let mut form = form_urlencoded::Serializer::new(String::new());
        match state.rotated.as_ref().or(credentials.refresh_token.as_ref()) {
            Some(token) => form
                .append_pair("grant_type", "refresh_token")
                .append_pair("refresh_token", token),
            None => form.append_pair("grant_type", "client_credentials"),
        };
        if let Some(resource) = &state.resource {
            form.append_pair("resource", resource);
        }
        let scopes: Vec<&str> = credentials
            .scopes
            .iter()
            .chain(&state.step_up)
            .map(String::as_str)
            .collect();
        if !scopes.is_empty() {
            form.append_pair("scope", &scopes.join(" "));
        }
        let mut basic = None;
        match &credentials.client_secret {
            Some(secret) if authentication == ClientAuthentication::Basic => {
                basic = Some((form_encoded(&credentials.client_id), form_encoded(secret)));
            }
            secret => {
                form.append_pair("client_id", &credentials.client_id);
                if let Some(secret) = secret {
                    form.append_pair("client_secret", secret);
                }
            }
        }
        (form.finish(), basic)
    }

    /// Checks a token, and keeps a new refresh token.
    fn accept(&self, state: &mut State, response: TokenResponse) -> Result<AccessToken, String> {
        let TokenResponse {
            access_token,
            token_type,
            expires_in,
            refresh_token,
        } = response;
        let access_token = Zeroizing::new(access_token);
        self.redaction.add_token(&access_token);
        if let Some(token) = refresh_token.map(Zeroizing::new) {
            self.redaction.add_token(&token);
            let previous = state.rotated.as_ref().or(self.credentials.refresh_token.as_ref());
            if previous.is_some_and(|previous| *previous != token) {
                state.rotated = Some(token);
                state.is_unstored = true;
            }
        }
        if !token_type.eq_ignore_ascii_case("bearer") {
            return Err(format!("the issuer gives tokens of the type `{}`", quoted(&token_type)));
        }
        let is_token = !access_token.is_empty()
            && access_token.len() <= TOKEN_BYTES_MAX
            && access_token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = Zeroizing::new(format!("Bearer {}", access_token.as_str()));
        let header = HeaderValue::from_str(&header).ok().filter(|_| is_token);
        let mut header = header.ok_or("the issuer's token has invalid characters, or is too long")?;
        header.set_sensitive(true);
        let validity = expires_in.map_or(VALIDITY_MAX, |seconds| Duration::from_secs(seconds).min(VALIDITY_MAX));
        let margin = EXPIRY_MARGIN.min(validity / 2);
        Ok(AccessToken {
            header,
            renewal: Instant::now() + validity - margin,
        })
    }
}

fn form_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
