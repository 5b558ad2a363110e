//! Connecting to a server: starting it if it is a process, and agreeing on a revision of the protocol.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;
use zeroize::Zeroizing;

use super::client_options::ClientOptions;
use super::connection::Connection;
use super::handler::Handler;
use super::handshake_failure::describe;
use super::input::InputProvider;
use super::notifications::Notifications;
use super::probe;
use crate::config::{HttpEndpoint, OauthClient, ProcessEndpoint, RevisionChoice, ServerConfig, ServerEndpoint};
use crate::failure::{LoginRequired, login_required, quoted, too_slow, unauthorized, unavailable};
use crate::login::LoginSlot;
use crate::transport::{
    ChildTransport, ClientIdentity, ClientTokens, Diagnostics, HttpSender, LoginSettings, LoginTokens,
    OauthCredentials, ProcessCommand, TokenFailure, TokenSource,
};
use crate::value::{PartOrigin, Redaction, SettingValue, names_a_secret};
use toolwit_core::limits::{MCP_PROGRESS_WALL_MAX, Span};
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// The time by which the limit of an HTTP response exceeds the limit of its call, so that the call ends first.
const RESPONSE_GRACE: Duration = Duration::from_secs(5);

type Service = RunningService<RoleClient, Handler>;

/// Connects to a server and agrees on a revision of the protocol.
///
/// # Errors
/// The reason why the server cannot be used, without secrets.
pub(super) async fn connect(
    config: &ServerConfig,
    options: &ClientOptions,
    context: &ToolContext,
) -> Result<Connection, Error> {
    let mut connector = Connector {
        config,
        options,
        context,
        redaction: Redaction::default(),
        diagnostics: Diagnostics::default(),
        token_source: None,
    };
    let service = tokio::time::timeout(config.startup_timeout, connector.connect()).await;
    let service = service.unwrap_or_else(|_| {
        let why = format!("it did not answer within {}", Span(config.startup_timeout));
        Err(too_slow(&config.name, &why).with_suggestion("raise `startup_timeout` of the server"))
    });
    let Connector {
        redaction, diagnostics, ..
    } = connector;
    match service {
        Ok(service) => Ok(Connection::new(config.name.clone(), service, diagnostics, redaction)),
        Err(error) => {
            let error = match diagnostics.last_words(&redaction).await {
                Some(last_words) => error.with_note(&last_words),
                None => error,
            };
            let log = diagnostics.stderr(&redaction);
            let login_required = error
                .source()
                .and_then(|source| source.downcast_ref::<LoginRequired>())
                .cloned();
            let error = redaction.redact_error(error.with_log(log.map(Into::into)));
            // `redact_error` replaces the source of the error by text. A caller looks for a `LoginRequired`, so this source
            // is set again.
            Err(match login_required {
                Some(login_required) => error.with_source(login_required),
                None => error,
            })
        }
    }
}

/// Connects to a server, in one or more attempts. The attempts share the redaction and the token source.
struct Connector<'a> {
    config: &'a ServerConfig,
    options: &'a ClientOptions,
    context: &'a ToolContext,
    redaction: Redaction,
    /// The diagnostics of the last attempt.
    diagnostics: Diagnostics,
    /// The source of the tokens for an HTTP server whose token is not configured. `None` before the first attempt.
    token_source: Option<TokenSource>,
}

impl Connector<'_> {
    /// Connects to the server and performs the handshake, with the configured revision or the newest that both sides
    /// support. Starts the server if it is a process.
    async fn connect(&mut self) -> Result<Service, Error> {
        let newest = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match self.config.revision {
            RevisionChoice::Newest => ClientLifecycleMode::Auto {
                preferred_versions: newest,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            RevisionChoice::Handshake => ClientLifecycleMode::Initialize,
            RevisionChoice::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: newest,
            },
        };
        let first_error = match self.attempt_handshake(lifecycle).await? {
            Ok(service) => return self.check_revision(service),
            Err(error) => error,
        };
        let is_process = matches!(self.config.endpoint, ServerEndpoint::Process(_));
        let can_retry = self.config.revision == RevisionChoice::Newest
            && !first_error.is_authorization_required()
            && !self.has_token_failure()
            && (!is_process
                || matches!(
                    first_error,
                    ClientInitializeError::ConnectionClosed(_)
                        | ClientInitializeError::NoCompatibleProtocolVersion { .. }
                ));
        if can_retry {
            // A server that supports only the handshake may end the connection when it receives `server/discover`.
            self.diagnostics = Diagnostics::default();
            if let Ok(service) = self.attempt_handshake(ClientLifecycleMode::Initialize).await? {
                return self.check_revision(service);
            }
        }
        Err(self.handshake_error(&first_error).await)
    }

    /// Connects once. The inner error is that of a failed handshake: an attempt with another lifecycle can succeed. After
    /// the outer error, every other attempt would fail, too.
    async fn attempt_handshake(
        &mut self,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Result<Service, ClientInitializeError>, Error> {
        let handler = Handler {
            input: InputProvider::new(self.config, self.options.requests.clone(), self.redaction.clone()),
            notifications: Notifications::default(),
            redaction: self.redaction.clone(),
        };
        match &self.config.endpoint {
            ServerEndpoint::Process(process) => {
                let command = self.process_command(process)?;
                let mut transport = ChildTransport::start(&command, self.diagnostics.clone())
                    .map_err(|why| unavailable(&self.config.name, &why))?;
                let lifecycle = match lifecycle {
                    ClientLifecycleMode::Auto { preferred_versions, .. } => {
                        let client = handler.input.client_info();
                        let patience = probe::DISCOVER_PATIENCE;
                        probe::lifecycle_of(&mut transport, &client, preferred_versions, patience).await
                    }
                    lifecycle => Some(lifecycle),
                };
                let Some(lifecycle) = lifecycle else {
                    let why = "the server closed it during the probe".to_owned();
                    return Ok(Err(ClientInitializeError::ConnectionClosed(why)));
                };
                Ok(handler.serve_with_lifecycle(transport, lifecycle).await)
            }
            ServerEndpoint::Http(http) => {
                let headers = self.headers(http)?;
                let wall_max = MCP_PROGRESS_WALL_MAX.max(self.config.timeout) + RESPONSE_GRACE;
                let sender = HttpSender::new(http.url.scheme() == "https", headers, wall_max, self.redaction.clone())
                    .map_err(|why| unavailable(&self.config.name, &why))?
                    .with_tokens(self.token_source(http).await?);
                let mut transport_config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str());
                // The caller of a request connects again if the session is lost.
                transport_config.reinit_on_expired_session = false;
                let transport = StreamableHttpClientTransport::with_client(sender, transport_config);
                Ok(handler.serve_with_lifecycle(transport, lifecycle).await)
            }
        }
    }

    fn process_command(&mut self, process: &ProcessEndpoint) -> Result<ProcessCommand, Error> {
        let mut variables: Vec<(String, Zeroizing<String>)> = Vec::new();
        for name in &process.inherited {
            let value = self.options.values.variable(name);
            variables.extend(value.map(|value| (name.clone(), Zeroizing::new(value))));
        }
        for (name, setting) in &process.variables {
            let value = self.resolve(name, setting)?;
            variables.retain(|(inherited, _)| inherited != name);
            variables.push((name.clone(), value));
        }
        if !process.has_visible_secrets
            && let Some(argument) = process.arguments.iter().find(|argument| argument.has_secret())
        {
            let message = format!(
                "the MCP server `{}` cannot be used: its argument `{argument}` would be visible to every user of the machine",
                self.config.name
            );
            let error = Error::new(ErrorKind::Configuration, Phase::Load, message);
            return Err(error
                .with_suggestion("set it in `env`; or set `visible_secrets = true` if nobody else uses the machine"));
        }
        let arguments = process.arguments.iter().map(|setting| self.resolve("", setting));
        Ok(ProcessCommand {
            program: process.program.clone(),
            arguments: arguments.collect::<Result<_, _>>()?,
            variables,
            directory: process.directory.clone(),
        })
    }

    fn headers(&mut self, http: &HttpEndpoint) -> Result<HeaderMap, Error> {
        let server = &self.config.name;
        let invalid = |name: &str| unavailable(server, &format!("the header `{}` is not valid", quoted(name)));
        let mut headers = HeaderMap::new();
        for (name, setting) in &http.headers {
            let value = self.resolve(name, setting)?;
            let value = HeaderValue::from_str(&value).map_err(|_| invalid(name))?;
            let name = HeaderName::try_from(name).map_err(|_| invalid(name))?;
            headers.insert(name, value);
        }
        if let Some(setting) = &http.bearer {
            let token = self.resolve("bearer", setting)?;
            self.redaction.add(&token);
            let value = Zeroizing::new(format!("Bearer {}", token.as_str()));
            let value = HeaderValue::from_str(&value).map_err(|_| invalid("authorization"))?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// Returns the source of tokens, or `None` for a server whose token is configured. The first attempt creates the source
    /// and requests the first token.
    async fn token_source(&mut self, http: &HttpEndpoint) -> Result<Option<TokenSource>, Error> {
        let has_header = |(name, _): &(String, SettingValue)| name.eq_ignore_ascii_case(AUTHORIZATION.as_str());
        if http.bearer.is_some() || http.oauth.is_none() && http.headers.iter().any(has_header) {
            return Ok(None);
        }
        if self.token_source.is_none() {
            let source = match &http.oauth {
                Some(client) => TokenSource::Client(Arc::new(self.client_tokens(&http.url, client)?)),
                None => TokenSource::Login(Arc::new(self.login_tokens(http)?)),
            };
            let header = source.header().await;
            header.map_err(|failure| token_error(&self.config.name, failure))?;
            self.token_source = Some(source);
        }
        Ok(self.token_source.clone())
    }

    fn login_tokens(&mut self, http: &HttpEndpoint) -> Result<LoginTokens, Error> {
        let login = &http.login;
        let secret = login.client_secret.as_ref();
        let settings = LoginSettings {
            issuer: login.issuer.clone(),
            client_id: login.client_id.clone(),
            client_secret: secret.map(|secret| self.resolve("client_secret", secret)).transpose()?,
        };
        let slot = LoginSlot::new(self.options.logins.clone(), &self.config.name, &http.url);
        Ok(LoginTokens::new(
            http.url.clone(),
            slot,
            settings,
            self.redaction.clone(),
        ))
    }

    fn client_tokens(&mut self, server: &Url, client: &OauthClient) -> Result<ClientTokens, Error> {
        let mut resolve_optional = |name, setting: &Option<SettingValue>| {
            let setting = setting.as_ref();
            setting.map(|setting| self.resolve(name, setting)).transpose()
        };
        let credentials = OauthCredentials {
            issuer: client.issuer.clone(),
            client: ClientIdentity {
                id: client.client_id.clone(),
                secret: resolve_optional("client_secret", &client.client_secret)?,
            },
            refresh_token: resolve_optional("refresh_token", &client.refresh_token)?,
            scopes: client.scopes.clone(),
            step_up_scopes: client.step_up_scopes.clone(),
        };
        let secret_name = client.refresh_token.as_ref().and_then(SettingValue::secret_name);
        let secret_name = secret_name.map(str::to_owned);
        let values = self.options.values.clone();
        let on_rotation = move |token: &str| {
            let secret_name = secret_name
                .as_ref()
                .ok_or("the setting `refresh_token` is not a secret")?;
            let stored = values.replace_secret(secret_name, token);
            stored.map_err(|error| error.message.clone())
        };
        Ok(ClientTokens::new(
            server.clone(),
            credentials,
            self.redaction.clone(),
            on_rotation,
        ))
    }

    /// Returns the value of a setting, and adds its secrets to the redaction. `name` is the name of the variable, header or
    /// setting; it is empty for an argument.
    ///
    /// Secrets are the values of secrets and of the context, and everything in a setting or a variable whose name says so.
    /// Other variables of the environment, such as `HOME`, are secrets only in a header or a token: a process gets paths
    /// and options from them, which its results must be able to contain.
    fn resolve(&mut self, name: &str, setting: &SettingValue) -> Result<Zeroizing<String>, Error> {
        let parts = setting
            .resolved_parts(&*self.options.values, self.context)
            .map_err(|error| {
                let why = if name.is_empty() {
                    error.message.clone()
                } else {
                    format!("{} for `{name}`", error.message)
                };
                let message = format!("the MCP server `{}` cannot be used: {why}", self.config.name);
                Error::new(error.kind, error.phase, message)
            })?;
        let is_process = matches!(self.config.endpoint, ServerEndpoint::Process(_));
        let is_secret = |origin: PartOrigin<'_>| match origin {
            PartOrigin::Text => false,
            PartOrigin::Secret => true,
            PartOrigin::Variable(variable) => !is_process || names_a_secret(variable),
        };
        let value = Zeroizing::new(parts.iter().map(|part| part.text.as_str()).collect::<String>());
        for part in parts.iter().filter(|part| is_secret(part.origin)) {
            self.redaction.add(&part.text);
        }
        if names_a_secret(name) {
            self.redaction.add(&value);
            // A value such as `Bearer TOKEN` consists of a scheme and a token. The server can return the token alone.
            if let Some((_, token)) = value.split_once(' ') {
                self.redaction.add(token);
            }
        }
        let password = Url::parse(&value)
            .ok()
            .and_then(|url| url.password().map(str::to_owned));
        if let Some(password) = password {
            self.redaction.add(&password);
        }
        Ok(value)
    }

    /// Returns the service if the revision that the server has chosen is supported.
    fn check_revision(&self, service: Service) -> Result<Service, Error> {
        let info = service.peer().peer_info();
        let revision = info.as_ref().map(|info| &info.protocol_version);
        if revision.is_some_and(|revision| ProtocolVersion::KNOWN_VERSIONS.contains(revision)) {
            return Ok(service);
        }
        let revision = revision.map_or("", |revision| revision.as_str());
        let revision = self.redaction.quoted(revision);
        let why = format!("it uses the revision `{revision}` of the protocol, which is not supported");
        Err(unavailable(&self.config.name, &why))
    }

    /// Returns whether the last attempt to obtain a token failed.
    fn has_token_failure(&self) -> bool {
        self.token_source
            .as_ref()
            .is_some_and(|tokens| tokens.failure().is_some())
    }

    /// Returns the error of a failed handshake.
    async fn handshake_error(&self, error: &ClientInitializeError) -> Error {
        let name = &self.config.name;
        if let Some(failure) = self.token_source.as_ref().and_then(TokenSource::failure) {
            return token_error(name, failure);
        }
        if error.is_authorization_required() && self.token_source.is_some() {
            return unauthorized(name, "it refuses the tokens of its issuer")
                .with_suggestion("check `oauth` of the server");
        }
        if error.is_authorization_required() {
            // Without a token source, the configuration has a token or a header.
            return unauthorized(name, "it refuses the configured credentials")
                .with_suggestion("check `bearer`, or the header `authorization`, of the server");
        }
        let why = describe(error, &self.diagnostics, &self.redaction).await;
        unavailable(name, &why)
    }
}

/// Returns the error of a server for which no token could be obtained.
fn token_error(server: &str, failure: TokenFailure) -> Error {
    match failure {
        TokenFailure {
            why,
            login_scopes: Some(scopes),
        } => {
            let server = server.to_owned();
            login_required(LoginRequired { server, scopes }, &why)
        }
        failure => unauthorized(server, &failure.to_string()).with_suggestion("check `oauth` of the server"),
    }
}
