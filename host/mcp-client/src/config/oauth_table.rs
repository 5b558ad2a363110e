//! The table `oauth` of a server in a configuration file.

use serde::Deserialize;

use super::oauth_client::OauthClient;
use super::oauth_login::OauthLogin;
use crate::value::SettingValue;

/// The table `oauth` of a server.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OauthTable {
    #[serde(default)]
    login: bool,
    issuer: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SettingValue>,
    client_metadata_url: Option<String>,
    refresh_token: Option<SettingValue>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    step_up_scopes: Vec<String>,
}

/// The source of the tokens for a server.
pub(super) enum OauthConfig {
    /// A client with a secret or a refresh token, which needs no user.
    Client(OauthClient),
    /// The login of a user.
    Login(OauthLogin),
}

impl OauthTable {
    /// Checks the table. A table with a client secret or a refresh token configures a client, unless `login` is true. Any
    /// other table configures a login.
    ///
    /// # Errors
    /// The reason why the table is invalid.
    pub(super) fn into_config(self) -> Result<OauthConfig, String> {
        let is_valid_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(scope) = self
            .scopes
            .iter()
            .chain(&self.step_up_scopes)
            .find(|scope| !is_valid_scope(scope))
        {
            return Err(format!("`{}` is not a valid scope", scope.escape_debug()));
        }
        let has_credentials = self.client_secret.is_some() || self.refresh_token.is_some();
        if has_credentials && !self.login {
            return self.into_client().map(OauthConfig::Client);
        }
        self.into_login().map(OauthConfig::Login)
    }

    fn into_client(self) -> Result<OauthClient, String> {
        if self.client_metadata_url.is_some() {
            return Err("`client_metadata_url` is for a login; set `login = true`".to_owned());
        }
        let (Some(issuer), Some(client_id)) = (&self.issuer, &self.client_id) else {
            return Err("`oauth` with `client_secret` or `refresh_token` needs `issuer` and `client_id`".to_owned());
        };
        let mut client = OauthClient::new(issuer, client_id).map_err(|error| error.message.clone())?;
        client.client_secret = self.client_secret;
        client.refresh_token = self.refresh_token;
        client.scopes = self.scopes;
        client.step_up_scopes = self.step_up_scopes;
        Ok(client)
    }

    fn into_login(self) -> Result<OauthLogin, String> {
        if self.refresh_token.is_some() {
            return Err("`oauth` must not have both `login` and `refresh_token`".to_owned());
        }
        if !self.step_up_scopes.is_empty() {
            return Err(
                "`step_up_scopes` is for a client without a login: a login requests further scopes itself".to_owned(),
            );
        }
        if self.client_secret.is_some() && self.client_id.is_none() {
            return Err("`client_secret` needs `client_id`".to_owned());
        }
        if self.client_id.as_deref() == Some("") {
            return Err("`client_id` must not be empty".to_owned());
        }
        let mut login = OauthLogin::default().with_scopes(self.scopes);
        if let Some(issuer) = &self.issuer {
            login = login.with_issuer(issuer).map_err(|error| error.message.clone())?;
        }
        if let Some(url) = &self.client_metadata_url {
            let login_with_url = login.with_client_metadata_url(url);
            login = login_with_url.map_err(|error| error.message.clone())?;
        }
        login.client_id = self.client_id;
        login.client_secret = self.client_secret;
        Ok(login)
    }
}
