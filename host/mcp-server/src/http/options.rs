//! The options of an HTTP server.

use std::net::SocketAddr;

use serde::Serialize;
use url::Url;

use super::access_token::AccessToken;
use super::token_rule::TokenRule;
use toolwit::{Error, ErrorKind, Phase};

/// Default of the maximum number of sessions that exist at the same time.
const DEFAULT_SESSIONS_MAX: usize = 1_000;

/// Default of the maximum number of connections that are open at the same time.
const DEFAULT_CONNECTIONS_MAX: usize = 512;

/// Default of the maximum number of requests per minute of a caller.
const DEFAULT_REQUESTS_PER_MINUTE: u32 = 6_000;

/// The options of an HTTP server. A server without tokens and token rules can only listen on a loopback address.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    pub(super) address: SocketAddr,
    pub(super) tokens: Vec<AccessToken>,
    pub(super) token_rules: Vec<TokenRule>,
    pub(super) required_scopes: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) protected_resource: Option<ProtectedResource>,
    pub(super) sessions_max: usize,
    pub(super) connections_max: usize,
    pub(super) requests_per_minute: u32,
}

/// The protected resource metadata of the server. It shows OAuth clients where they can get a token (RFC 9728).
#[derive(Clone, Debug, Serialize)]
pub struct ProtectedResource {
    /// The URL under which clients reach the server.
    pub resource: String,
    /// The URLs of the authorization servers.
    pub authorization_servers: Vec<String>,
    /// The scopes that a client should request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
}

impl HttpOptions {
    /// Creates the options of a server that listens on an address. Port 0 selects a free port.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            tokens: Vec::new(),
            token_rules: Vec::new(),
            required_scopes: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            protected_resource: None,
            sessions_max: DEFAULT_SESSIONS_MAX,
            connections_max: DEFAULT_CONNECTIONS_MAX,
            requests_per_minute: DEFAULT_REQUESTS_PER_MINUTE,
        }
    }

    /// Adds a bearer token. If there is a token or a token rule, requests without a valid token are refused.
    #[must_use]
    pub fn with_token(mut self, token: AccessToken) -> Self {
        self.tokens.push(token);
        self
    }

    /// Adds a rule for access tokens of the authorization servers of the [protected
    /// resource](Self::with_protected_resource). The tokens are JSON Web Tokens (RFC 9068), signed with RS256, ES256 or
    /// EdDSA. The first rule that applies to a token decides. The keys of the authorization servers are requested when
    /// the first token arrives.
    #[must_use]
    pub fn with_token_rule(mut self, rule: TokenRule) -> Self {
        self.token_rules.push(rule);
        self
    }

    /// Sets the scopes that every access token of an authorization server needs.
    #[must_use]
    pub fn with_required_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required_scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a name under which clients reach the server, such as `tools.example.com`. `localhost`, `127.0.0.1`
    /// and `[::1]` are always allowed if the server listens on a loopback address.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Adds an origin whose web pages may send requests, such as `https://app.example.com`.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets the metadata for OAuth clients.
    #[must_use]
    pub fn with_protected_resource(mut self, metadata: ProtectedResource) -> Self {
        self.protected_resource = Some(metadata);
        self
    }

    /// Sets the maximum number of sessions. Clients of revision 2026-07-28 use no sessions: the maximum number of their
    /// conversations is set to the same value. Each token and rule has an equal share of both numbers.
    #[must_use]
    pub fn with_sessions_max(mut self, sessions: usize) -> Self {
        self.sessions_max = sessions;
        self
    }

    /// Sets the maximum number of connections. It is also the maximum number of unanswered requests, of which each token
    /// and rule has an equal share.
    #[must_use]
    pub fn with_connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// Sets the maximum number of requests per minute of a caller whose token or rule does not set another limit.
    #[must_use]
    pub fn with_requests_per_minute(mut self, requests: u32) -> Self {
        self.requests_per_minute = requests;
        self
    }

    /// Returns the addresses of the authorization servers. Addresses that are not valid URLs are omitted.
    pub(super) fn issuers(&self) -> Vec<Url> {
        let servers = self
            .protected_resource
            .iter()
            .flat_map(|resource| &resource.authorization_servers);
        servers.filter_map(|server| Url::parse(server).ok()).collect()
    }

    /// Checks that the options are consistent, and that a server on a public address requires tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a public address without a token, a public address without a host name, token
    /// rules without an authorization server, two tokens or rules with the same name, or a limit of 0.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refused = |message: String, hint: &str| {
            Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint))
        };
        let is_public = !self.address.ip().to_canonical().is_loopback();
        let has_tokens = !self.tokens.is_empty() || !self.token_rules.is_empty();
        if is_public && !has_tokens {
            let message = format!(
                "`{}` can be reached from other machines, and the server has no token",
                self.address
            );
            return refused(message, "add a token, or listen on `127.0.0.1`");
        }
        if is_public && self.hosts.is_empty() {
            let message = format!(
                "`{}` can be reached from other machines, and the server has no host name",
                self.address
            );
            return refused(
                message,
                "add the name under which clients reach it, such as `tools.example.com`",
            );
        }
        if !self.token_rules.is_empty() && self.issuers().is_empty() {
            let message = "there are rules for access tokens, and no authorization server whose address can be used";
            return refused(
                message.to_owned(),
                "name the server and its authorization servers, by `https` URLs",
            );
        }
        let tokens = self.tokens.iter().map(|token| token.principal().name());
        let rules = self.token_rules.iter().map(|rule| rule.principal().name());
        let mut names: Vec<_> = tokens.chain(rules).collect();
        names.sort_unstable();
        if let Some(duplicate) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(
                format!("two tokens or rules have the name `{}`", duplicate[0]),
                "give each its own name",
            );
        }
        if self.sessions_max == 0 || self.connections_max == 0 || self.requests_per_minute == 0 {
            return refused(
                "a limit of sessions, connections or requests is 0".to_owned(),
                "use a limit of at least 1",
            );
        }
        Ok(())
    }
}
