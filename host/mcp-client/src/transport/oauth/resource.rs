//! Protected resource metadata of MCP servers (RFC 9728).
//!
//! The metadata is untrusted: it can only confirm a configured issuer, or name the issuer at which a user is asked to log
//! in.

use serde::Deserialize;
use url::Url;

use super::authorization_server::{is_same_issuer, well_known_addresses};
use super::http_request::{get_json, means_absent, status_error};
use crate::value::Redaction;

/// The maximum number of issuers, and of scopes, that are read from metadata.
const METADATA_ITEMS_MAX: usize = 64;

/// The protected resource metadata of an MCP server.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// An MCP server that requires tokens, as its protected resource metadata describes it.
pub(crate) struct ProtectedResource {
    /// The resource identifier, for which tokens are requested (RFC 8707).
    pub(crate) identifier: String,
    /// The issuers of the tokens.
    pub(crate) issuers: Vec<String>,
    /// The scopes that a client requests if the challenge of the server names no scopes.
    pub(crate) scopes: Vec<String>,
}

impl ProtectedResource {
    /// Requests the metadata of a server, at `metadata_url` or else at the well-known addresses. Returns `None` if the
    /// server answers each request with a status such as 404, which means that it has no metadata.
    ///
    /// # Errors
    /// If the metadata cannot be read, which may be temporary, or is for another server.
    pub(crate) async fn discover(
        server: &Url,
        metadata_url: Option<&str>,
        redaction: &Redaction,
    ) -> Result<Option<Self>, String> {
        let addresses = match metadata_url {
            Some(url) => vec![metadata_address(server, url, redaction)?],
            None => well_known_addresses(server, "oauth-protected-resource", false),
        };
        for address in addresses {
            let metadata = match get_json::<ResourceMetadata>(&address, redaction).await? {
                Ok(metadata) => metadata,
                Err(status) if means_absent(status) => continue,
                // The server may have metadata. Without the metadata, a token could be requested for the wrong resource or
                // from the wrong issuer.
                Err(status) => return Err(status_error(&address, status, redaction)),
            };
            if !is_resource_of(&metadata.resource, server) {
                let resource = redaction.quoted(&metadata.resource);
                return Err(format!(
                    "the metadata of the server is for another server, `{resource}`"
                ));
            }
            let truncate = |texts: Vec<String>| texts.into_iter().take(METADATA_ITEMS_MAX).collect();
            return Ok(Some(Self {
                identifier: metadata.resource,
                issuers: truncate(metadata.authorization_servers),
                scopes: truncate(metadata.scopes_supported),
            }));
        }
        Ok(None)
    }

    /// Checks that the server accepts tokens of an issuer.
    ///
    /// # Errors
    /// If the metadata does not name the issuer.
    pub(crate) fn check_issuer(&self, issuer: &Url, redaction: &Redaction) -> Result<(), String> {
        if self.issuers.iter().any(|url| is_same_issuer(url, issuer)) {
            return Ok(());
        }
        let issuer = redaction.quoted(issuer.as_str());
        if self.issuers.is_empty() {
            return Err(format!(
                "the metadata of the server names no issuer, so it does not confirm `{issuer}`"
            ));
        }
        let accepted = redaction.quoted(&self.issuers.join(", "));
        Err(format!(
            "the server accepts tokens of `{accepted}` and not of `{issuer}`"
        ))
    }
}

/// Returns the resource identifier of a server, for which tokens are requested (RFC 8707). It is the identifier in the
/// metadata of the server, or the [`default_identifier`] if the server has no metadata.
///
/// # Errors
/// If the metadata cannot be read, is for another server, or does not name the issuer.
pub(crate) async fn resource_identifier(
    server: &Url,
    issuer: &Url,
    metadata_url: Option<&str>,
    redaction: &Redaction,
) -> Result<String, String> {
    match ProtectedResource::discover(server, metadata_url, redaction).await? {
        Some(resource) => resource.check_issuer(issuer, redaction).map(|()| resource.identifier),
        None => Ok(default_identifier(server)),
    }
}

/// Returns the address of the metadata that a server names in a challenge.
///
/// # Errors
/// If the address is not a URL, or has another origin than the server.
fn metadata_address(server: &Url, url: &str, redaction: &Redaction) -> Result<Url, String> {
    let refusal = |position: &str| format!("the server names metadata {position}, `{}`", redaction.quoted(url));
    let parsed = Url::parse(url).map_err(|_| refusal("at an invalid URL"))?;
    if parsed.origin() == server.origin() {
        Ok(parsed)
    } else {
        Err(refusal("at another origin"))
    }
}

/// Returns whether a resource identifier covers a server: it must have the origin of the server, and the path of the
/// server or a parent of this path.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let resource_path = resource.path().trim_end_matches('/');
    let path_below = server.path().strip_prefix(resource_path);
    resource.origin() == server.origin() && path_below.is_some_and(|path| path.is_empty() || path.starts_with('/'))
}

/// Returns the resource identifier of a server without metadata: its URL without query and fragment.
pub(crate) fn default_identifier(server: &Url) -> String {
    let mut server = server.clone();
    server.set_query(None);
    server.set_fragment(None);
    let text = server.as_str();
    let text = if server.path() == "/" {
        text.trim_end_matches('/')
    } else {
        text
    };
    text.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_of_another_server_is_refused() {
        let server = url("https://h/mcp");
        for resource in ["https://h", "https://h/", "https://h/mcp", "https://h/mcp/"] {
            assert!(is_resource_of(resource, &server), "{resource}");
        }
        for resource in [
            "https://h/mc",
            "https://h/mcp/b",
            "https://i/mcp",
            "http://h/mcp",
            "https://h:444/mcp",
            "h",
        ] {
            assert!(!is_resource_of(resource, &server), "{resource}");
        }
        let address = |url: &str| metadata_address(&server, url, &Redaction::default());
        assert!(address("https://h/m").is_ok());
        assert!(address("https://evil.example/m").is_err());
        assert_eq!(default_identifier(&url("https://h/?q")), "https://h");
    }

    #[test]
    fn an_issuer_that_the_metadata_does_not_name_is_refused() {
        let check = |issuers: &[&str]| {
            let resource = ProtectedResource {
                identifier: "https://h/mcp".to_owned(),
                issuers: issuers.iter().map(|&issuer| issuer.to_owned()).collect(),
                scopes: Vec::new(),
            };
            resource.check_issuer(&url("https://i"), &Redaction::default())
        };
        assert_eq!(check(&["https://j", "https://i"]), Ok(()));
        assert_eq!(
            check(&["https://j"]).unwrap_err(),
            "the server accepts tokens of `https://j` and not of `https://i/`"
        );
        assert_eq!(
            check(&[]).unwrap_err(),
            "the metadata of the server names no issuer, so it does not confirm `https://i/`"
        );
    }
}
