//! Metadata of servers (RFC 9728) and of authorization servers (RFC 8414).
//!
//! The metadata of a server is untrusted: it can only confirm the configured issuer. That of the issuer must name the issuer itself.

use serde::Deserialize;
use url::Url;

use super::exchange::get;
use crate::failure::quoted;
use crate::value::check_address;

/// The metadata of a server.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    token_endpoint: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Where and how tokens are requested.
#[derive(Clone, Debug)]
pub(super) struct TokenEndpoint {
    pub(super) url: Url,
    pub(super) authentication: ClientAuthentication,
}

/// How the client authenticates itself with its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuthentication {
    /// In the header `Authorization`.
    Basic,
    /// In the form.
    Post,
}

/// Returns the identifier of a server for which a token is requested (RFC 8707).
///
/// # Errors
/// If the metadata of the server is for another server, or does not name the issuer.
pub(super) async fn resource(server: &Url, issuer: &Url, metadata_url: Option<&str>) -> Result<String, String> {
    let candidates = match metadata_url {
        Some(url) => vec![metadata_address(server, url)?],
        None => well_known(server, "oauth-protected-resource", false),
    };
    for candidate in candidates {
        let Some(metadata) = get::<ResourceMetadata>(&candidate).await? else {
            continue;
        };
        if !is_resource_of(&metadata.resource, server) {
            let resource = quoted(&metadata.resource);
            return Err(format!(
                "the metadata of the server is for another server, `{resource}`"
            ));
        }
        if !metadata.authorization_servers.iter().any(|url| is_same(url, issuer)) {
            let other = quoted(&metadata.authorization_servers.join(", "));
            return Err(format!(
                "the server accepts tokens of `{other}` and not of the configured `issuer`"
            ));
        }
        return Ok(metadata.resource);
    }
    Ok(identifier(server))
}

/// Returns the address of the metadata that a server names in a challenge.
fn metadata_address(server: &Url, url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).ok().filter(|parsed| parsed.origin() == server.origin());
    parsed.ok_or_else(|| format!("the server names metadata at another origin, `{}`", quoted(url)))
}

/// Returns where an issuer gives tokens.
///
/// # Errors
/// If the issuer has no metadata, or such as cannot be used.
pub(super) async fn token_endpoint(issuer: &Url) -> Result<TokenEndpoint, String> {
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
    for candidate in candidates {
        if let Some(metadata) = get::<IssuerMetadata>(&candidate).await? {
            return usable(metadata, issuer);
        }
    }
    Err(format!("the issuer {} has no metadata", quoted(issuer.as_str())))
}

fn usable(metadata: IssuerMetadata, issuer: &Url) -> Result<TokenEndpoint, String> {
    if !is_same(&metadata.issuer, issuer) {
        let other = quoted(&metadata.issuer);
        return Err(format!("the metadata of the issuer is that of another one, `{other}`"));
    }
    let text = metadata.token_endpoint;
    let refused = |why: &str| format!("the token endpoint `{}` is refused: {why}", quoted(&text));
    let url = Url::parse(&text).map_err(|_| refused("it is not a URL"))?;
    check_address(&url).map_err(refused)?;
    if url.scheme() != issuer.scheme() {
        return Err(refused("its scheme is not that of the issuer"));
    }
    let methods = metadata.token_endpoint_auth_methods_supported;
    let has = |name: &str| {
        methods
            .as_ref()
            .is_some_and(|methods| methods.iter().any(|method| method == name))
    };
    let authentication = if has("client_secret_post") && !has("client_secret_basic") {
        ClientAuthentication::Post
    } else {
        ClientAuthentication::Basic
    };
    Ok(TokenEndpoint { url, authentication })
}

/// Returns the addresses of a well-known document: that of the path, and that of the origin unless the path is required.
fn well_known(base: &Url, name: &str, is_path_required: bool) -> Vec<Url> {
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

/// Returns whether a resource identifier covers a server: the same origin, and its path or one above it.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    resource.origin() == server.origin() && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Compares an issuer with the configured one. A slash at the end is ignored.
fn is_same(text: &str, issuer: &Url) -> bool {
    text.trim_end_matches('/') == issuer.as_str().trim_end_matches('/')
}

fn identifier(server: &Url) -> String {
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
        assert_eq!(identifier(&url("https://h/?q")), "https://h");
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
        assert!(metadata_address(&server, "https://h/m").is_ok());
        assert!(metadata_address(&server, "https://evil.example/m").is_err());
    }

    #[test]
    fn metadata_of_an_issuer_names_it_and_an_encrypted_endpoint() {
        let issuer = url("https://login.example.com");
        let check = |issuer_text: &str, endpoint: &str| {
            let metadata = IssuerMetadata {
                issuer: issuer_text.to_owned(),
                token_endpoint: endpoint.to_owned(),
                token_endpoint_auth_methods_supported: None,
            };
            usable(metadata, &issuer).is_ok()
        };
        assert!(check("https://login.example.com", "https://tokens.example.com/token"));
        assert!(check("https://login.example.com/", "https://login.example.com/token"));
        assert!(!check("https://evil.example", "https://login.example.com/token"));
        assert!(!check("https://login.example.com", "http://login.example.com/token"));
        assert!(!check("https://login.example.com", "http://127.0.0.1/token"));
        assert!(!check("https://login.example.com", "/token"));
        assert!(!check(
            "https://login.example.com",
            "https://a:b@login.example.com/token"
        ));
    }
}
