//! The start of a login in a browser.

use http::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::pending_login::PendingLogin;
use super::pkce;
use super::redirect::RedirectListener;
use super::registration::LoginClient;
use super::requested_scopes::ScopeSources;
use crate::config::{HttpEndpoint, ServerConfig, ServerEndpoint};
use crate::login::{LoginSlot, StoredLogin};
use crate::session::ClientOptions;
use crate::transport::{AuthorizationServer, Challenge, ProtectedResource, default_identifier, request_challenge};
use crate::value::Redaction;
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// A request to log a user in at a server over HTTP, by the authorization code flow of OAuth with PKCE. The browser
/// must run on the same machine.
///
/// The issuer is the authorization server. If the configuration has no issuer, the first issuer in the metadata of the
/// server is used. A server without metadata is its own issuer. If the configuration has no client, the issuer registers
/// a client. Show the user [`PendingLogin::issuer`] and open [`PendingLogin::url`] in a browser.
///
/// ```no_run
/// use toolwit_mcp_client::{ClientOptions, LoginRequest, ServerConfig};
///
/// # async fn example(options: ClientOptions) -> Result<(), toolwit_core::Error> {
/// let docs = ServerConfig::http("docs", "https://docs.example.com/mcp")?;
/// let login = LoginRequest::new(&docs, &options).begin().await?;
/// println!("log in to {} at {}", login.issuer(), login.url());
/// let report = login.finish().await?;
/// println!("logged in with the scopes {:?}", report.scopes);
/// # Ok(())
/// # }
/// ```
pub struct LoginRequest<'a> {
    config: &'a ServerConfig,
    options: &'a ClientOptions,
    scopes: Vec<String>,
    port: u16,
}

impl<'a> LoginRequest<'a> {
    /// Creates a request for a login at a server. The login is stored in the [store](ClientOptions::with_logins) of the
    /// options.
    #[must_use]
    pub fn new(config: &'a ServerConfig, options: &'a ClientOptions) -> Self {
        Self {
            config,
            options,
            scopes: Vec::new(),
            port: 0,
        }
    }

    /// Sets additional scopes. They are requested along with the scopes of the configuration or of the server. The scopes of
    /// an earlier login at the same issuer are then requested again, so that the new tokens keep them.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the port of 127.0.0.1 to which the browser returns, for clients that are registered with a fixed port. By
    /// default, a free port is used.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Finds the issuer, registers the client if necessary, and listens for the browser.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a server that does not use logins, and [`ErrorKind::Io`] with the reason why a
    /// login is not possible.
    pub async fn begin(self) -> Result<PendingLogin, Error> {
        let name = &self.config.name;
        let http = login_endpoint(self.config)?;
        self.begin_at(http).await.map_err(|why| {
            let message = format!("a login at the MCP server `{name}` is not possible: {why}");
            Error::new(ErrorKind::Io, Phase::Load, message)
        })
    }

    /// Returns the configured secret of the client, if there is one, and a redaction with this secret and the secrets of the
    /// earlier login.
    fn client_secret_and_redaction(
        &self,
        http: &HttpEndpoint,
        earlier_login: Option<&StoredLogin>,
    ) -> Result<(Option<Zeroizing<String>>, Redaction), String> {
        let redaction = Redaction::default();
        let stored_secrets = earlier_login.into_iter().flat_map(StoredLogin::secrets);
        stored_secrets.for_each(|secret| redaction.add_token(secret));
        let setting = http.login.client_secret.as_ref();
        let client_secret = setting.map(|setting| setting.resolve(&*self.options.values, &ToolContext::new()));
        let client_secret = client_secret.transpose().map_err(|error| error.message.clone())?;
        if let Some(secret) = &client_secret {
            redaction.add(secret);
        }
        Ok((client_secret, redaction))
    }

    async fn begin_at(&self, http: &HttpEndpoint) -> Result<PendingLogin, String> {
        let slot = LoginSlot::new(self.options.logins.clone(), &self.config.name, &http.url);
        // A stored login that cannot be read is ignored. The new login replaces it.
        let earlier_login = slot.read().await.ok().flatten();
        let (client_secret, redaction) = self.client_secret_and_redaction(http, earlier_login.as_ref())?;

        let challenge = probe(&http.url, &redaction).await?;
        let is_login_required = challenge.is_some();
        let challenge = challenge.unwrap_or_default();
        let resource =
            ProtectedResource::discover(&http.url, challenge.resource_metadata.as_deref(), &redaction).await?;
        if resource.is_none() && !is_login_required && http.login.issuer.is_none() {
            return Err("the server requires no login, and has no metadata that names an issuer".to_owned());
        }
        let issuer_url = issuer_url(http, resource.as_ref(), &redaction)?;
        let issuer = AuthorizationServer::request_metadata(&issuer_url, &redaction).await?;
        let mut url = issuer.authorization_endpoint()?;
        let token_endpoint = issuer.token_endpoint()?;

        let earlier_login = earlier_login.filter(|login| login.issuer == issuer.issuer());
        let scopes = ScopeSources {
            configured: &http.login.scopes,
            additional: &self.scopes,
            earlier_login: earlier_login.as_ref().map_or(&[], |login| &login.scopes),
            challenge: &challenge,
            resource: resource.as_ref(),
            issuer: &issuer,
        };
        let scopes = scopes.requested_scopes();

        let listener = RedirectListener::bind(self.port).await?;
        let redirect_url = listener.url();
        let client =
            LoginClient::find_or_register(&http.login, client_secret, &issuer, &redirect_url, &redaction).await?;
        let resource = resource.map_or_else(|| default_identifier(&http.url), |resource| resource.identifier);
        let (state, verifier) = (pkce::random_text()?, pkce::random_text()?);
        redaction.add(&state);
        redaction.add(&verifier);
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.identity.id)
                .append_pair("redirect_uri", &redirect_url)
                .append_pair("state", &state)
                .append_pair("code_challenge", &pkce::code_challenge(&verifier))
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
        }
        Ok(PendingLogin {
            server_name: self.config.name.clone(),
            server_url: http.url.clone(),
            url,
            issuer: issuer.issuer().to_owned(),
            is_issuer_required: issuer.names_issuer_in_responses(),
            token_endpoint,
            resource,
            scopes,
            client,
            state,
            verifier,
            redirect_url,
            listener,
            slot,
            redaction,
        })
    }
}

/// Returns the endpoint of a server whose tokens can come from a login.
///
/// # Errors
/// [`ErrorKind::Configuration`] for a process, and for a server with a configured token or OAuth client.
pub(super) fn login_endpoint(config: &ServerConfig) -> Result<&HttpEndpoint, Error> {
    let refused = |why: &str| {
        let message = format!("the MCP server `{}` does not use a login: {why}", config.name);
        Err(Error::new(ErrorKind::Configuration, Phase::Registry, message))
    };
    let ServerEndpoint::Http(http) = &config.endpoint else {
        return refused("it is a process; only servers with a `url` use logins");
    };
    let has_header = http
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if http.bearer.is_some() || http.oauth.is_some() || has_header {
        return refused("its configuration has a token or the credentials of an OAuth client");
    }
    Ok(http)
}

/// Returns the URL of the configured issuer, or else that of the first issuer in the metadata of the server. If the server
/// has metadata, the metadata must name a configured issuer. A server without metadata is its own issuer, as in revision
/// 2025-03-26 of the protocol.
fn issuer_url(http: &HttpEndpoint, resource: Option<&ProtectedResource>, redaction: &Redaction) -> Result<Url, String> {
    if let Some(issuer) = &http.login.issuer {
        if let Some(resource) = resource {
            resource.check_issuer(issuer, redaction)?;
        }
        return Ok(issuer.clone());
    }
    let Some(resource) = resource else {
        let mut origin = http.url.clone();
        origin.set_path("");
        origin.set_query(None);
        origin.set_fragment(None);
        return Ok(origin);
    };
    let first_issuer = resource.issuers.first().ok_or("its metadata names no issuer")?;
    Url::parse(first_issuer).map_err(|_| {
        let issuer = redaction.quoted(first_issuer);
        format!("its metadata names the issuer `{issuer}`, which is not a URL")
    })
}

/// Sends a request without a token. Returns the challenge with which the server requires a token, or `None` if the
/// server does not require one.
async fn probe(server: &Url, redaction: &Redaction) -> Result<Option<Challenge>, String> {
    let revision = "2026-07-28";
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": {"name": "toolwit", "version": env!("CARGO_PKG_VERSION")},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(
        HeaderName::from_static("mcp-protocol-version"),
        HeaderValue::from_static(revision),
    );
    headers.insert(
        HeaderName::from_static("mcp-method"),
        HeaderValue::from_static("tools/list"),
    );
    request_challenge(server, &message, headers, redaction).await
}
