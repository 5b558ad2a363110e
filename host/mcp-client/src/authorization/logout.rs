//! The logout, which ends the login of a user.

use url::Url;
use zeroize::Zeroizing;

use super::login_request::login_endpoint;
use crate::config::{HttpEndpoint, ServerConfig};
use crate::login::{LoginSlot, StoredLogin};
use crate::session::ClientOptions;
use crate::transport::{AuthorizationServer, ClientAuthentication, ClientIdentity, Form, TokenEndpoint};
use crate::value::Redaction;
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// Ends the login of a user at a server.
pub struct Logout<'a> {
    config: &'a ServerConfig,
    options: &'a ClientOptions,
}

/// The result of revoking the tokens of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revocation {
    /// No login was stored.
    NoLogin,
    /// The issuer revoked the tokens.
    Revoked,
    /// The tokens stay valid until they expire, because the issuer has no endpoint that revokes tokens.
    NotOffered,
    /// At least one token may still be valid, because its revocation failed for this reason.
    Failed(String),
}

impl<'a> Logout<'a> {
    /// Creates a logout from a server. The options have the store of the login.
    #[must_use]
    pub fn new(config: &'a ServerConfig, options: &'a ClientOptions) -> Self {
        Self { config, options }
    }

    /// Removes the stored login, and asks its issuer to revoke the tokens. The login is removed even if the issuer does
    /// not revoke the tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a server that does not use logins, and [`ErrorKind::Io`] if the login cannot be
    /// locked or removed.
    pub async fn run(self) -> Result<Revocation, Error> {
        let http = login_endpoint(self.config)?;
        let slot = LoginSlot::new(self.options.logins.clone(), &self.config.name, &http.url);
        let failed = |why: String| {
            let message = format!(
                "the login at the MCP server `{}` cannot be removed: {why}",
                self.config.name
            );
            Error::new(ErrorKind::Io, Phase::Registry, message)
        };
        // Another process may be replacing the tokens. The guard makes other processes wait until the login is removed.
        let _renewal_guard = slot.begin_renewal().await.map_err(failed)?;
        let login = slot.read().await;
        let was_stored = slot.remove().await.map_err(failed)?;
        match login {
            Ok(Some(login)) => Ok(self.revoke(http, &login).await.unwrap_or_else(Revocation::Failed)),
            Ok(None) if was_stored => Ok(Revocation::Failed(
                "the stored login was for another address, so its issuer was not asked to revoke the tokens".to_owned(),
            )),
            Ok(None) => Ok(Revocation::NoLogin),
            // The stored login could not be read, so its tokens are unknown.
            Err(why) => Ok(Revocation::Failed(why)),
        }
    }

    async fn revoke(&self, http: &HttpEndpoint, login: &StoredLogin) -> Result<Revocation, String> {
        let issuer = Url::parse(&login.issuer).map_err(|_| "the login has no valid issuer".to_owned())?;
        let redaction = Redaction::default();
        login.secrets().for_each(|secret| redaction.add_token(secret));
        let issuer = AuthorizationServer::request_metadata(&issuer, &redaction).await?;
        let Some(url) = issuer.revocation_endpoint()? else {
            return Ok(Revocation::NotOffered);
        };
        let method_name = login.client_authentication.as_deref();
        let method = method_name.and_then(ClientAuthentication::from_name);
        let endpoint = TokenEndpoint {
            url,
            authentication: method
                .map_or_else(|| issuer.token_endpoint().map(|endpoint| endpoint.authentication), Ok)?,
        };
        let setting = http.login.client_secret.as_ref();
        let configured_secret = setting.map(|setting| setting.resolve(&*self.options.values, &ToolContext::new()));
        let configured_secret = configured_secret.transpose().map_err(|error| error.message.clone())?;
        if let Some(secret) = &configured_secret {
            redaction.add(secret);
        }
        let client = ClientIdentity {
            id: login.client_id.clone(),
            secret: configured_secret.or_else(|| login.client_secret.clone().map(Zeroizing::new)),
        };
        // Both tokens are sent, because some issuers do not revoke the access tokens of a revoked refresh token.
        let refresh_token = login.refresh_token.iter().map(|token| (token, "refresh_token"));
        let mut failures = Vec::new();
        for (token, token_type) in refresh_token.chain([(&login.access_token, "access_token")]) {
            let form = Form::default().with("token", token).with("token_type_hint", token_type);
            match client.post(&endpoint, form, &redaction).await {
                Ok((true, _)) => {}
                Ok((false, _)) => failures.push(format!(
                    "the issuer did not revoke the {}",
                    token_type.replace('_', " ")
                )),
                Err(reason) => failures.push(reason),
            }
        }
        if failures.is_empty() {
            Ok(Revocation::Revoked)
        } else {
            Err(failures.join("; "))
        }
    }
}
