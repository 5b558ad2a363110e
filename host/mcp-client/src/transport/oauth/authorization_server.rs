//! Authorization servers, as their metadata describes them (RFC 8414, OpenID Connect). Metadata of another issuer is
//! refused.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::http_request::{error_status, get, means_absent};
use crate::value::{Redaction, check_address};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum number of signing keys of an issuer.
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
    address: Url,
    metadata: IssuerMetadata,
    /// The secrets that must not appear in an error.
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
    /// With the secret in the header `Authorization`.
    Basic,
    /// With the secret in the form.
    Post,
}

impl ClientAuthentication {
    /// Returns the name of the method.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// Returns the supported method with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
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
        let discovered = Self::request_metadata(issuer, &redaction).await;
        discovered.map_err(|why| failed(issuer, &redaction, &format!("has no usable metadata: {why}")))
    }

    /// Returns the identifier of the issuer, as its metadata and its tokens state it.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// Requests the public keys with which the issuer signs (RFC 7517), at most 64. The keys are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the metadata has no usable address of keys, or the keys cannot be read.
    pub async fn signing_keys(&self) -> Result<Vec<Value>, Error> {
        let keys = async {
            let url = self.endpoint("jwks_uri", self.metadata.jwks_uri.as_deref())?;
            let set = get::<KeySet>(&url, &self.redaction).await?;
            set.map_err(|status| error_status(&url, status, &self.redaction))
        };
        let unusable = |why: String| failed(&self.address, &self.redaction, &format!("has no usable keys: {why}"));
        let mut set = keys.await.map_err(unusable)?;
        set.keys.truncate(KEYS_MAX);
        Ok(set.keys)
    }

    /// Requests the metadata of an issuer, as [`Self::discover`] does, for a caller with secrets.
    ///
    /// # Errors
    /// The reason why the metadata cannot be used, without secrets.
    pub(crate) async fn request_metadata(issuer: &Url, redaction: &Redaction) -> Result<Self, String> {
        let mut candidates = well_known(issuer, "oauth-authorization-server", true);
        candidates.extend(well_known(issuer, "openid-configuration", true));
        let mut appended = issuer.clone();
        appended.set_path(&format!(
            "{}/.well-known/openid-configuration",
            issuer.path().trim_end_matches('/')
        ));
        if !candidates.contains(&appended) {
            candidates.push(appended);
        }
        // An error status does not end the search: some issuers return 500 for a document that they do not have.
        let mut unavailable = None;
        for candidate in candidates {
            match get::<IssuerMetadata>(&candidate, redaction).await? {
                Ok(metadata) => return Self::with_checked_issuer(metadata, issuer, redaction),
                Err(status) if means_absent(status) => {}
                Err(status) => {
                    unavailable.get_or_insert_with(|| error_status(&candidate, status, redaction));
                }
            }
        }
        let issuer = redaction.quoted(issuer.as_str());
        Err(unavailable.unwrap_or_else(|| format!("the issuer {issuer} has no metadata")))
    }

    fn with_checked_issuer(metadata: IssuerMetadata, issuer: &Url, redaction: &Redaction) -> Result<Self, String> {
        if !is_same_issuer(&metadata.issuer, issuer) {
            let actual_issuer = redaction.quoted(&metadata.issuer);
            return Err(format!(
                "the metadata of the issuer is that of another one, `{actual_issuer}`"
            ));
        }
        Ok(Self {
            address: issuer.clone(),
            metadata,
            redaction: redaction.clone(),
        })
    }

    /// Returns the endpoint of token requests, with the first supported method of `client_secret_basic`,
    /// `client_secret_post` and `none`. If the issuer lists none of them, the method is `client_secret_basic`.
    ///
    /// # Errors
    /// If the issuer does not have this endpoint, or it cannot be used.
    pub(crate) fn token_endpoint(&self) -> Result<TokenEndpoint, String> {
        let url = self.endpoint("token_endpoint", self.metadata.token_endpoint.as_deref())?;
        let methods = self.metadata.token_endpoint_auth_methods_supported.as_deref();
        let authentication = match methods {
            Some(methods) => {
                let supported = |method: &ClientAuthentication| methods.iter().any(|name| name == method.name());
                let preferred = [ClientAuthentication::Basic, ClientAuthentication::Post];
                let first = preferred.into_iter().find(supported);
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

    /// Returns whether a client without a secret can request tokens. `true` if the issuer does not list its methods.
    pub(crate) fn has_public_clients(&self) -> bool {
        let methods = self.metadata.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|name| name == "none"))
    }

    /// Returns the URL at which a user logs in.
    ///
    /// # Errors
    /// If the issuer does not have this endpoint or does not support PKCE with SHA-256 (RFC 7636), or if the endpoint
    /// cannot be used.
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
    /// If the endpoint cannot be used.
    pub(crate) fn registration_endpoint(&self) -> Result<Option<Url>, String> {
        let endpoint = self.metadata.registration_endpoint.as_deref();
        endpoint
            .map(|url| self.endpoint("registration_endpoint", Some(url)))
            .transpose()
    }

    /// Returns the URL at which tokens are revoked (RFC 7009), if the metadata has one.
    ///
    /// # Errors
    /// If the endpoint cannot be used.
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

    /// Returns whether every response to a login names the issuer (RFC 9207).
    pub(crate) fn names_issuer(&self) -> bool {
        self.metadata.authorization_response_iss_parameter_supported
    }

    /// Returns whether the issuer accepts the address of a client id metadata document as the id of a client.
    pub(crate) fn reads_client_metadata(&self) -> bool {
        self.metadata.client_id_metadata_document_supported
    }

    fn endpoint(&self, name: &str, text: Option<&str>) -> Result<Url, String> {
        let text = text.ok_or_else(|| format!("the issuer has no `{name}`"))?;
        let refused = |why: &str| format!("the `{name}` `{}` is refused: {why}", self.redaction.quoted(text));
        let url = Url::parse(text).map_err(|_| refused("it is not a URL"))?;
        check_address(&url).map_err(refused)?;
        if url.scheme() != self.address.scheme() {
            return Err(refused("its scheme is not that of the issuer"));
        }
        if url.fragment().is_some() {
            return Err(refused("it has a fragment"));
        }
        Ok(url)
    }
}

fn failed(issuer: &Url, redaction: &Redaction, why: &str) -> Error {
    let message = format!("the issuer {} {why}", redaction.quoted(issuer.as_str()));
    Error::new(ErrorKind::Io, Phase::Load, message)
}

/// Returns the possible addresses of a well-known document: with the path of `base` and, unless the path is required,
/// without it.
pub(super) fn well_known(base: &Url, name: &str, is_path_required: bool) -> Vec<Url> {
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

/// Returns whether a text names an issuer. Slashes at the end are ignored.
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
    fn documents_have_the_addresses_of_the_specification() {
        let addresses = |base: &str, is_path_required| -> Vec<String> {
            let urls = well_known(&url(base), "x", is_path_required).into_iter();
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
    fn metadata_of_an_issuer_names_it_and_encrypted_endpoints() {
        let issuer = url("https://login.example.com");
        let check = |issuer_text: &str, endpoint: &str| {
            let metadata = IssuerMetadata {
                issuer: issuer_text.to_owned(),
                token_endpoint: Some(endpoint.to_owned()),
                authorization_endpoint: Some(endpoint.to_owned()),
                code_challenge_methods_supported: vec!["S256".to_owned()],
                ..IssuerMetadata::default()
            };
            let server = AuthorizationServer::with_checked_issuer(metadata, &issuer, &Redaction::default());
            server.is_ok_and(|server| {
                let is_ok = server.token_endpoint().is_ok();
                assert_eq!(is_ok, server.authorization_endpoint().is_ok());
                is_ok
            })
        };
        assert!(check("https://login.example.com", "https://tokens.example.com/token"));
        assert!(check("https://login.example.com/", "https://login.example.com/token"));
        assert!(!check("https://evil.example", "https://login.example.com/token"));
        assert!(!check("https://login.example.com", "http://login.example.com/token"));
        assert!(!check("https://login.example.com", "http://127.0.0.1/token"));
        assert!(!check("https://login.example.com", "/token"));
        assert!(!check("https://login.example.com", "javascript:alert(1)"));
        assert!(!check("https://login.example.com", "https://login.example.com/token#x"));
        assert!(!check(
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
