//! The settings for the login of a user.

use url::Url;

use crate::value::{SettingValue, check_address};
use toolwit_core::{Error, ErrorKind, Phase};

/// The settings for the login of a user to a server over HTTP, in a browser. All settings are optional: by default, the
/// server names the issuer and the scopes, and the issuer registers the client.
///
/// ```
/// use toolwit_mcp_client::{OauthLogin, ServerConfig};
///
/// let login = OauthLogin::default()
///     .with_issuer("https://login.example.com")?
///     .with_client_id("toolwit")
///     .with_scopes(["docs.read"]);
/// let docs = ServerConfig::http("docs", "https://docs.example.com/mcp")?.with_login(login);
/// # let _ = docs;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OauthLogin {
    /// The authorization server. If the MCP server has protected resource metadata, the metadata must name this issuer.
    pub issuer: Option<Url>,
    /// The id of a client that is registered at the issuer.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SettingValue>,
    /// The address of a client id metadata document. Issuers that support such documents use this address as the id of the
    /// client.
    pub client_metadata_url: Option<Url>,
    /// The requested scopes; by default those that the server names.
    pub scopes: Vec<String>,
}

impl OauthLogin {
    /// Sets the authorization server. Plain HTTP is for loopback addresses only.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an issuer that cannot be used.
    pub fn with_issuer(mut self, issuer: &str) -> Result<Self, Error> {
        self.issuer = Some(parse_address("issuer", issuer)?);
        Ok(self)
    }

    /// Sets the id of a client that is registered at the issuer.
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Sets the secret of the registered client.
    #[must_use]
    pub fn with_client_secret(mut self, secret: impl Into<SettingValue>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets the address of the client id metadata document.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an address that is not an `https` URL with a path, or has a user name, a password, a
    /// query or a fragment.
    pub fn with_client_metadata_url(mut self, url: &str) -> Result<Self, Error> {
        let url = parse_address("client_metadata_url", url)?;
        if url.scheme() != "https" || url.path() == "/" {
            return Err(configuration_error(
                "client_metadata_url",
                "it must be an `https` URL with a path",
            ));
        }
        self.client_metadata_url = Some(url);
        Ok(self)
    }

    /// Sets the requested scopes.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }
}

fn parse_address(name: &str, text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|error| configuration_error(name, &format!("it is not a URL: {error}")))?;
    check_address(&url).map_err(|why| configuration_error(name, why))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(configuration_error(name, "it must not have a query or a fragment"));
    }
    Ok(url)
}

fn configuration_error(name: &str, why: &str) -> Error {
    let message = format!("the login cannot be configured: `{name}` cannot be used: {why}");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}
