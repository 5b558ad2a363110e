//! `toolwit serve`: serves tools to MCP clients over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::http_server_config::{CallerRights, HttpServerConfig, read_token};
use crate::input::served_host::{ServedHostFlags, warn_about_broken};
use crate::output::page::{FAINT, Page};
use crate::output::printer::Printer;
use toolwit::tool::{ApprovalPolicy, ToolContext};
use toolwit::{Error, ErrorKind, Phase};
use toolwit_mcp_server::{AccessToken, HttpListener, HttpOptions, McpServer, Principal, TokenRule};

const EXAMPLES: &str = "\
Examples:
  toolwit serve --http 127.0.0.1:8080 --plugins ~/tools
  toolwit serve --http 127.0.0.1:8080 --token-file team.token
  toolwit serve --http 0.0.0.0:8080 --host tools.example.com --config server.toml

The protocol is at /mcp. /healthz answers 200 while the server runs, /metrics has counters for Prometheus.

A configuration file lists tokens, each with its own plugins, grants and limits:
  [[token]]
  name = \"ci\"
  file = \"ci.token\"            # contains the token; only its owner may read it
  plugins = [\"text\", \"calc\"]   # default: all
  grants = \"ci-grants.toml\"    # default: those of the server
  requests_per_minute = 60
  context = { tenant = \"acme\" }

  [oauth]                      # authorization servers for OAuth clients
  resource = \"https://tools.example.com/mcp\"
  authorization_servers = [\"https://login.example.com\"]
  required_scopes = [\"tools\"]

  [[oauth.rule]]               # rights of OAuth access tokens; the first matching rule applies
  name = \"support\"
  scope = \"tools.support\"      # or subject, or client; without them, matches all tokens
  plugins = [\"calc\"]";

/// Serve the tools of plugins to MCP clients over HTTP
///
/// Speaks the Model Context Protocol, revisions 2024-11-05 to 2026-07-28, as streamable HTTP. An address that is not a
/// loopback address requires a token and a host name. A call that needs an approval is shown to the user of the client;
/// it does not run if the client cannot ask.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    http: SocketAddr,
    /// File with a bearer token that clients must send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Host name under which clients reach the server; can be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Origin of web pages that may send requests, such as https://app.example.com; can be repeated
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
    /// Maximum number of sessions at the same time [default: 1000]
    #[arg(long, value_name = "N")]
    sessions: Option<usize>,
    /// File with tokens and their rights
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    host_flags: ServedHostFlags,
}

impl Serve {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let (approvals, content) = (self.host_flags.approval_policy()?, self.host_flags.content()?);
        // Read before a host is built, so that every host protects the files that it names.
        let config = self.config.as_deref().map(HttpServerConfig::read).transpose()?;
        let host = self.host_flags.build(None).await?;
        warn_about_broken(printer, &host.registry());
        let mut options = HttpOptions::new(self.http);
        options = self.hosts.iter().fold(options, |options, host| options.with_host(host));
        options = self
            .origins
            .iter()
            .fold(options, |options, origin| options.with_origin(origin));
        if let Some(sessions) = self.sessions {
            options = options.with_sessions_max(sessions);
        }
        if let Some(file) = &self.token_file {
            let principal = Principal::new("token", host.clone()).with_approvals(approvals.clone());
            options = options.with_token(AccessToken::new(&read_token(file)?, principal)?);
        }
        if let Some(config) = &config {
            options = self.with_config(options, config, &host, &approvals).await?;
        }
        let listener = HttpListener::bind(options).await?;
        let mut page = Page::new();
        page.text("listening on ").text(listener.url()).end();
        page.styled(FAINT, "stop with Ctrl-C").end();
        printer.message(&page);
        let local = Principal::new("local", host).with_approvals(approvals);
        let server = McpServer::for_principal(local).with_content(content);
        listener.serve(&server, cancel.clone()).await;
        Ok(Exit::Success)
    }

    /// Adds the tokens and the OAuth settings of a configuration file.
    async fn with_config(
        &self,
        mut options: HttpOptions,
        config: &HttpServerConfig,
        host: &toolwit::Toolwit,
        approvals: &ApprovalPolicy,
    ) -> Result<HttpOptions, Error> {
        for token in &config.tokens {
            let principal = self.principal(&token.rights, host, approvals).await?;
            let mut access_token = AccessToken::new(&read_token(&token.file)?, principal)?;
            if let Some(requests) = token.rights.requests_per_minute {
                access_token = access_token.with_requests_per_minute(requests);
            }
            options = options.with_token(access_token);
        }
        let Some(oauth) = &config.oauth else {
            return Ok(options);
        };
        for rule_entry in &oauth.rules {
            let mut rule = TokenRule::new(self.principal(&rule_entry.rights, host, approvals).await?);
            if let Some(subject) = &rule_entry.subject {
                rule = rule.with_subject(subject);
            }
            if let Some(client) = &rule_entry.client {
                rule = rule.with_client(client);
            }
            if let Some(scope) = &rule_entry.scope {
                rule = rule.with_scope(scope);
            }
            if let Some(requests) = rule_entry.rights.requests_per_minute {
                rule = rule.with_requests_per_minute(requests);
            }
            options = options.with_token_rule(rule);
        }
        Ok(options
            .with_protected_resource(oauth.resource.clone())
            .with_required_scopes(&oauth.required_scopes))
    }

    /// Creates the principal of a caller with these rights. A caller with its own grants gets its own host.
    async fn principal(
        &self,
        rights: &CallerRights,
        host: &toolwit::Toolwit,
        approvals: &ApprovalPolicy,
    ) -> Result<Principal, Error> {
        let host = match &rights.grants {
            Some(grants) => self.host_flags.build(Some(grants)).await?,
            None => host.clone(),
        };
        let registry = host.registry();
        let names: Vec<_> = registry.packages().iter().map(|package| package.name.clone()).collect();
        if let Some(unknown) = rights.plugins.iter().flatten().find(|plugin| !names.contains(plugin)) {
            let name = &rights.name;
            let message = format!("`{name}` names the plugin `{unknown}`, which does not exist");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion(format!("the plugins are {}", names.join(", "))));
        }
        let mut principal = Principal::new(rights.name.as_str(), host).with_approvals(approvals.clone());
        if let Some(plugins) = rights.plugins.clone() {
            principal = principal.restricted_to(move |id| {
                let owner = id.split(['/', '#']).next().unwrap_or(id);
                plugins.iter().any(|plugin| plugin == owner)
            });
        }
        let context = rights.context.iter();
        let context = context.fold(ToolContext::new(), |context, (key, value)| {
            context.with(key, value.as_str())
        });
        Ok(principal.with_context(context))
    }
}
