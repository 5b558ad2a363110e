//! A login that waits for the browser.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use url::Url;
use zeroize::Zeroizing;

use super::authorization_response::ExpectedResponse;
use super::redirect::RedirectListener;
use super::registration::LoginClient;
use crate::login::{LoginSlot, StoredLogin};
use crate::transport::{Form, TokenEndpoint};
use crate::value::Redaction;
use toolwit_core::limits::Span;
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum time in which the user logs in and the tokens are obtained.
const LOGIN_WALL_MAX: Duration = Duration::from_secs(600);

/// A login that waits for the user's browser. Dropping it cancels the login.
pub struct PendingLogin {
    pub(super) server_name: String,
    pub(super) server_url: Url,
    /// The address that the user opens in a browser.
    pub(super) url: Url,
    pub(super) issuer: String,
    /// Whether the response must name the issuer.
    pub(super) is_issuer_required: bool,
    pub(super) token_endpoint: TokenEndpoint,
    /// The identifier of the server, for which the tokens are requested (RFC 8707).
    pub(super) resource: String,
    /// The requested scopes.
    pub(super) scopes: Vec<String>,
    pub(super) client: LoginClient,
    /// The random value that the response must repeat.
    pub(super) state: Zeroizing<String>,
    /// The random value that proves in the token request that this process began the login (PKCE).
    pub(super) verifier: Zeroizing<String>,
    /// The address to which the browser returns.
    pub(super) redirect_url: String,
    pub(super) listener: RedirectListener,
    pub(super) slot: LoginSlot,
    /// The secrets of the login, which must not appear in errors.
    pub(super) redaction: Redaction,
}

/// The report of a login that succeeded.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LoginReport {
    /// The issuer of the tokens.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// How long the access token is valid, if the issuer states it.
    pub validity: Option<Duration>,
    /// Whether the access token can be renewed after it has expired, because there is a refresh token.
    pub is_renewable: bool,
}

impl PendingLogin {
    /// Returns the address that the user opens in a browser.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the issuer, at which the user logs in. If no issuer is configured, the server has chosen it; see
    /// [`LoginRequest`](crate::LoginRequest).
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the requested scopes.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Waits for the browser, requests the tokens and stores them.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if the login takes too long, and [`ErrorKind::Io`] with the reason why no tokens were
    /// obtained or stored.
    pub async fn finish(self) -> Result<LoginReport, Error> {
        let name = self.server_name.clone();
        let failed = |kind, why: &str| {
            let message = format!("the login at the MCP server `{name}` failed: {why}");
            Error::new(kind, Phase::Load, message)
        };
        match tokio::time::timeout(LOGIN_WALL_MAX, self.receive_and_store_tokens()).await {
            Ok(report) => report.map_err(|why| failed(ErrorKind::Io, &why)),
            Err(_) => {
                let why = format!("it did not finish within {}", Span(LOGIN_WALL_MAX));
                Err(failed(ErrorKind::Timeout, &why))
            }
        }
    }

    async fn receive_and_store_tokens(self) -> Result<LoginReport, String> {
        let expected = ExpectedResponse {
            state: self.state,
            issuer: self.issuer.clone(),
            is_issuer_required: self.is_issuer_required,
            redaction: self.redaction.clone(),
        };
        let code = self.listener.receive(expected).await?;
        let form = Form::grant("authorization_code")
            .with("code", &code)
            .with("redirect_uri", &self.redirect_url)
            .with("code_verifier", &self.verifier)
            .with("resource", &self.resource);
        let LoginClient {
            identity,
            authentication,
            is_registered,
        } = self.client;
        let mut endpoint = self.token_endpoint;
        endpoint.authentication = authentication.unwrap_or(endpoint.authentication);
        let issued_tokens = identity.request_tokens(&endpoint, form, &self.redaction).await;
        let issued_tokens = issued_tokens.map_err(|error| error.to_string())?;
        let to_plain_string = |token: &Zeroizing<String>| token.as_str().to_owned();
        let mut login = StoredLogin {
            server: self.server_url.to_string(),
            resource: self.resource,
            issuer: self.issuer,
            client_id: identity.id,
            client_secret: identity.secret.as_ref().filter(|_| is_registered).map(to_plain_string),
            client_authentication: authentication.map(|method| method.name().to_owned()),
            scopes: issued_tokens.scopes.unwrap_or(self.scopes),
            access_token: to_plain_string(&issued_tokens.access_token?),
            expires_at: None,
            refresh_token: issued_tokens.refresh_token.as_ref().map(to_plain_string),
        };
        login.set_validity(issued_tokens.validity);
        self.slot.write(&login).await?;
        Ok(LoginReport {
            issuer: login.issuer.clone(),
            scopes: login.scopes.iter().map(|scope| self.redaction.quoted(scope)).collect(),
            validity: issued_tokens.validity,
            is_renewable: login.refresh_token.is_some(),
        })
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin")
            .field("name", &self.server_name)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}
