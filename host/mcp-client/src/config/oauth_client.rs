//! A configured OAuth client that obtains the tokens for a server without a login of the user.

use url::Url;

use crate::value::{SettingValue, check_address};
use toolwit_core::{Error, ErrorKind, Phase};

/// A client of OAuth 2.1 that obtains the access tokens for a server: with a refresh token, or with its own
/// credentials.
///
/// Secrets and refresh tokens are sent to the issuer only, and access tokens to the server only. If the server
/// has protected resource metadata, the metadata must name the issuer, and cannot replace it.
///
/// ```
/// use toolwit_mcp_client::{OauthClient, ServerConfig, SettingValue};
///
/// let oauth = OauthClient::new("https://login.example.com", "toolwit")?
///     .with_client_secret(SettingValue::secret("docs-client"))
///     .with_scopes(["docs.read"])
///     .with_step_up_scopes(["docs.write"]);
/// let docs = ServerConfig::http("docs", "https://docs.example.com/mcp")?.with_oauth(oauth);
/// # let _ = docs;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OauthClient {
    /// The authorization server.
    pub issuer: Url,
    /// The id of the client at the issuer.
    pub client_id: String,
    /// The secret of the client. A client without a secret needs a refresh token.
    pub client_secret: Option<SettingValue>,
    /// The refresh token. Without a refresh token, the client obtains tokens for itself (`client_credentials`).
    pub refresh_token: Option<SettingValue>,
    /// The scopes of the first token; by default those that the issuer chooses.
    pub scopes: Vec<String>,
    /// Further scopes, which are requested only if the server requires them.
    pub step_up_scopes: Vec<String>,
}

impl OauthClient {
    /// Configures a client of an issuer. Plain HTTP is for loopback addresses only.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an empty client id, and for an issuer that cannot be used.
    pub fn new(issuer: &str, client_id: &str) -> Result<Self, Error> {
        let configuration_error = |why: &str| {
            let message = format!("the OAuth client cannot be configured: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let issuer =
            Url::parse(issuer).map_err(|error| configuration_error(&format!("`issuer` is not a URL: {error}")))?;
        check_address(&issuer).map_err(|why| configuration_error(&format!("`issuer` cannot be used: {why}")))?;
        if issuer.query().is_some() || issuer.fragment().is_some() {
            return Err(configuration_error("`issuer` must not have a query or a fragment"));
        }
        if client_id.is_empty() {
            return Err(configuration_error("`client_id` must not be empty"));
        }
        Ok(Self {
            issuer,
            client_id: client_id.to_owned(),
            client_secret: None,
            refresh_token: None,
            scopes: Vec::new(),
            step_up_scopes: Vec::new(),
        })
    }

    /// Sets the secret of the client.
    #[must_use]
    pub fn with_client_secret(mut self, secret: impl Into<SettingValue>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets the refresh token. If the issuer replaces the token, the new token is stored with
    /// [`ValueSource::replace_secret`](crate::ValueSource::replace_secret). Calls fail if the new token cannot be stored.
    #[must_use]
    pub fn with_refresh_token(mut self, token: impl Into<SettingValue>) -> Self {
        self.refresh_token = Some(token.into());
        self
    }

    /// Sets the scopes of the first token.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets further scopes, which are requested only if the server requires them.
    #[must_use]
    pub fn with_step_up_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.step_up_scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the settings of the client's secrets, with their names.
    pub(super) fn secret_settings(&self) -> impl Iterator<Item = (&str, &SettingValue)> {
        let secret = self.client_secret.iter().map(|setting| ("client_secret", setting));
        let token = self.refresh_token.iter().map(|setting| ("refresh_token", setting));
        secret.chain(token)
    }
}
