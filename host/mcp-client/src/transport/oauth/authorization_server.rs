//! Authorization servers and their metadata (RFC 8414, OpenID Connect). Metadata that names another issuer is refused.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::http_request::{get_json, means_absent, status_error};
use crate::value::{Redaction, check_address};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum number of signing keys that are read of an issuer.
const KEYS_MAX: usize = 64;

/// The metadata of an authorization server.
#[derive(Default, Deserialize)]
struct IssuerMetadata {
    issuer: String,
    token_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    jwks_uri: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
}

/// An authorization server. Its endpoints have the scheme of the issuer: `https`, or `http` on a loopback address.
pub struct AuthorizationServer {
    /// The address of the issuer, from which the addresses of its metadata are derived.
    issuer_url: Url,
    metadata: IssuerMetadata,
    /// The secrets that must not appear in errors.
    redaction: Redaction,
}

/// The URL and the client authentication of token requests.
#[derive(Clone, Debug)]
pub(crate) struct TokenEndpoint {
    pub(crate) url: Url,
    pub(crate) authentication: ClientAuthentication,
}

/// A method by which a client proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAuthentication {
    /// No authentication: the client has no secret.
    None,
    /// The secret in the header `Authorization`.
    Basic,
    /// The secret in the form.
    Post,
}

impl ClientAuthentication {
    /// Returns the name of the method in the OAuth protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// Returns the method with this name, or `None` if the method is not supported.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let methods = [Self::None, Self::Basic, Self::Post];
        methods.into_iter().find(|method| method.name() == name)
    }
}

/// The set of keys of an issuer (RFC 7517).
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl AuthorizationServer {
    /// Requests the metadata of an issuer.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the metadata cannot be read, or names another issuer.
    pub async fn discover(issuer: &Url) -> Result<Self, Error> {
        let redaction = Redaction::default();
        let server = Self::request_metadata(issuer, &redaction).await;
        server.map_err(|why| issuer_error(issuer, &redaction, &format!("has no usable metadata: {why}")))
    }

    /// Returns the identifier of the issuer, as its metadata states it.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// Requests the public keys with which the issuer signs (RFC 7517), at most 64. The keys are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the metadata has no usable `jwks_uri`, or the keys cannot be read.
    pub async fn signing_keys(&self) -> Result<Vec<Value>, Error> {
        let keys = async {
            let url = self.endpoint("jwks_uri", self.metadata.jwks_uri.as_deref())?;
            let set = get_json::<KeySet>(&url, &self.redaction).await?;
            set.map_err(|status| status_error(&url, status, &self.redaction))
        };
        let unusable =
            |why: String| issuer_error(&self.issuer_url, &self.redaction, &format!("has no usable keys: {why}"));
        let mut set = keys.await.map_err(unusable)?;
        set.keys.truncate(KEYS_MAX);
        Ok(set.keys)
    }

    /// Requests the metadata of an issuer, as [`Self::discover`] does, and redacts the secrets of the caller in errors.
    ///
    /// # Errors
    /// The reason why the metadata cannot be used, without secrets.
    pub(crate) async fn request_metadata(issuer: &Url, redaction: &Redaction) -> Result<Self, String> {
        let mut addresses = well_known_addresses(issuer, "oauth-authorization-server", true);
        addresses.extend(well_known_addresses(issuer, "openid-configuration", true));
        // OpenID Connect appends the well-known path to the path of the issuer.
        let mut openid_address = issuer.clone();
        openid_address.set_path(&format!(
            "{}/.well-known/openid-configuration",
            issuer.path().trim_end_matches('/')
        ));
        if !addresses.contains(&openid_address) {
            addresses.push(openid_address);
        }
        // An error status does not end the search, because some issuers return 500 for a document that they do not have.
        let mut first_error = None;
        for address in addresses {
            match get_json::<IssuerMetadata>(&address, redaction).await? {
                Ok(metadata) => return Self::with_checked_issuer(metadata, issuer, redaction),
                Err(status) if means_absent(status) => {}
                Err(status) => {
                    first_error.get_or_insert_with(|| status_error(&address, status, redaction));
                }
            }
        }
        let issuer = redaction.quoted(issuer.as_str());
        Err(first_error.unwrap_or_else(|| format!("the issuer {issuer} has no metadata")))
    }

    fn with_checked_issuer(metadata: IssuerMetadata, issuer: &Url, redaction: &Redaction) -> Result<Self, String> {
        if !is_same_issuer(&metadata.issuer, issuer) {
            let actual_issuer = redaction.quoted(&metadata.issuer);
            return Err(format!(
                "the metadata of the issuer is for another issuer, `{actual_issuer}`"
            ));
        }
        Ok(Self {
            issuer_url: issuer.clone(),
            metadata,
            redaction: redaction.clone(),
        })
    }

    /// Returns the endpoint of token requests, with the first method of `client_secret_basic`, `client_secret_post` and
    /// `none` that the issuer lists. If the issuer lists no methods or only others, the method is `client_secret_basic`.
    ///
    /// # Errors
    /// If the metadata has no token endpoint, or the endpoint is refused.
    pub(crate) fn token_endpoint(&self) -> Result<TokenEndpoint, String> {
        let url = self.endpoint("token_endpoint", self.metadata.token_endpoint.as_deref())?;
        let methods = self.metadata.token_endpoint_auth_methods_supported.as_deref();
        let authentication = match methods {
            Some(methods) => {
                let is_listed = |method: &ClientAuthentication| methods.iter().any(|name| name == method.name());
                let preferred = [ClientAuthentication::Basic, ClientAuthentication::Post];
                let first = preferred.into_iter().find(is_listed);
                first.unwrap_or(if methods.iter().any(|name| name == "none") {
                    ClientAuthentication::None
                } else {
                    ClientAuthentication::Basic
                })
            }
            None => ClientAuthentication::Basic,
        };
        Ok(TokenEndpoint { url, authentication })
    }

    /// Returns whether a client without a secret can request tokens. Returns `true` if the issuer does not list methods.
    pub(crate) fn supports_public_clients(&self) -> bool {
        let methods = self.metadata.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|name| name == "none"))
    }

    /// Returns the URL at which a user logs in.
    ///
    /// # Errors
    /// If the issuer does not support PKCE with SHA-256 (RFC 7636), the metadata has no authorization endpoint, or the
    /// endpoint is refused.
    pub(crate) fn authorization_endpoint(&self) -> Result<Url, String> {
        let methods = &self.metadata.code_challenge_methods_supported;
        if !methods.iter().any(|method| method == "S256") {
            return Err("the issuer does not support PKCE with `S256`".to_owned());
        }
        self.endpoint(
            "authorization_endpoint",
            self.metadata.authorization_endpoint.as_deref(),
        )
    }

    /// Returns the URL at which clients are registered, if the metadata has one.
    ///
    /// # Errors
    /// If the endpoint is refused.
    pub(crate) fn registration_endpoint(&self) -> Result<Option<Url>, String> {
        let endpoint = self.metadata.registration_endpoint.as_deref();
        endpoint
            .map(|url| self.endpoint("registration_endpoint", Some(url)))
            .transpose()
    }

    /// Returns the URL at which tokens are revoked (RFC 7009), if the metadata has one.
    ///
    /// # Errors
    /// If the endpoint is refused.
    pub(crate) fn revocation_endpoint(&self) -> Result<Option<Url>, String> {
        let endpoint = self.metadata.revocation_endpoint.as_deref();
        endpoint
            .map(|url| self.endpoint("revocation_endpoint", Some(url)))
            .transpose()
    }

    /// Returns whether the metadata lists a scope.
    pub(crate) fn lists_scope(&self, scope: &str) -> bool {
        self.metadata.scopes_supported.iter().any(|listed| listed == scope)
    }

    /// Returns whether the response to each login names the issuer (RFC 9207).
    pub(crate) fn names_issuer_in_responses(&self) -> bool {
        self.metadata.authorization_response_iss_parameter_supported
    }

    /// Returns whether the issuer accepts the address of a client ID metadata document as the id of a client.
    pub(crate) fn supports_client_metadata_documents(&self) -> bool {
        self.metadata.client_id_metadata_document_supported
    }

    /// Parses and checks the address of an endpoint. `name` is the name of its field in the metadata.
    fn endpoint(&self, name: &str, text: Option<&str>) -> Result<Url, String> {
        let text = text.ok_or_else(|| format!("the issuer has no `{name}`"))?;
        let refusal = |why: &str| format!("the `{name}` `{}` is refused: {why}", self.redaction.quoted(text));
        let url = Url::parse(text).map_err(|_| refusal("it is not a URL"))?;
        check_address(&url).map_err(refusal)?;
        if url.scheme() != self.issuer_url.scheme() {
            return Err(refusal("its scheme is not that of the issuer"));
        }
        if url.fragment().is_some() {
            return Err(refusal("it has a fragment"));
        }
        Ok(url)
    }
}

fn issuer_error(issuer: &Url, redaction: &Redaction, why: &str) -> Error {
    let message = format!("the issuer {} {why}", redaction.quoted(issuer.as_str()));
    Error::new(ErrorKind::Io, Phase::Load, message)
}

/// Returns the possible addresses of a well-known document: with the path of `base` and, unless `is_path_required`,
/// without this path.
pub(super) fn well_known_addresses(base: &Url, name: &str, is_path_required: bool) -> Vec<Url> {
    let path = base.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{name}{path}")];
    if !path.is_empty() && !is_path_required {
        paths.push(format!("/.well-known/{name}"));
    }
    let address = |path: String| {
        let mut url = base.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.into_iter().map(address).collect()
}

/// Returns whether a text is the identifier of an issuer. Slashes at the end are ignored.
pub(super) fn is_same_issuer(text: &str, issuer: &Url) -> bool {
    text.trim_end_matches('/') == issuer.as_str().trim_end_matches('/')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn well_known_documents_have_the_addresses_of_the_specification() {
        let addresses = |base: &str, is_path_required| -> Vec<String> {
            let urls = well_known_addresses(&url(base), "x", is_path_required).into_iter();
            urls.map(|url| url.to_string()).collect()
        };
        assert_eq!(
            addresses("https://h/a/mcp/?q=1", false),
            ["https://h/.well-known/x/a/mcp", "https://h/.well-known/x"]
        );
        assert_eq!(addresses("https://h/", false), ["https://h/.well-known/x"]);
        assert_eq!(addresses("https://h/tenant", true), ["https://h/.well-known/x/tenant"]);
    }

    #[test]
    fn metadata_with_another_issuer_or_an_unsafe_endpoint_is_refused() {
        let issuer = url("https://login.example.com");
        let accepts = |issuer_text: &str, endpoint: &str| {
            let metadata = IssuerMetadata {
                issuer: issuer_text.to_owned(),
                token_endpoint: Some(endpoint.to_owned()),
                authorization_endpoint: Some(endpoint.to_owned()),
                code_challenge_methods_supported: vec!["S256".to_owned()],
                ..IssuerMetadata::default()
            };
            let server = AuthorizationServer::with_checked_issuer(metadata, &issuer, &Redaction::default());
            server.is_ok_and(|server| {
                let is_endpoint_accepted = server.token_endpoint().is_ok();
                assert_eq!(is_endpoint_accepted, server.authorization_endpoint().is_ok());
                is_endpoint_accepted
            })
        };
        assert!(accepts("https://login.example.com", "https://tokens.example.com/token"));
        assert!(accepts("https://login.example.com/", "https://login.example.com/token"));
        assert!(!accepts("https://evil.example", "https://login.example.com/token"));
        assert!(!accepts("https://login.example.com", "http://login.example.com/token"));
        assert!(!accepts("https://login.example.com", "http://127.0.0.1/token"));
        assert!(!accepts("https://login.example.com", "/token"));
        assert!(!accepts("https://login.example.com", "javascript:alert(1)"));
        assert!(!accepts(
            "https://login.example.com",
            "https://login.example.com/token#x"
        ));
        assert!(!accepts(
            "https://login.example.com",
            "https://a:b@login.example.com/token"
        ));
    }

    #[test]
    fn an_issuer_without_pkce_is_refused() {
        let metadata = IssuerMetadata {
            issuer: "https://i".to_owned(),
            authorization_endpoint: Some("https://i/authorize".to_owned()),
            code_challenge_methods_supported: vec!["plain".to_owned()],
            ..IssuerMetadata::default()
        };
        let server = AuthorizationServer::with_checked_issuer(metadata, &url("https://i"), &Redaction::default());
        let server = server.ok().unwrap();
        assert!(server.authorization_endpoint().unwrap_err().contains("PKCE"));
    }
}
