//! The configuration of one server.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::endpoint::{HttpEndpoint, ProcessEndpoint, ServerEndpoint};
use super::oauth_client::OauthClient;
use super::oauth_login::OauthLogin;
use super::tool_filter::ToolFilter;
use crate::value::{SettingValue, check_address};
use toolwit_core::limits::{MCP_CALL_WALL_MAX, MCP_STARTUP_WALL_MAX};
use toolwit_core::{Error, ErrorKind, MetaFilter, Phase};

/// The maximum length of the name of a server, in bytes.
const SERVER_NAME_BYTES_MAX: usize = 64;

/// The environment variables that a server process gets from the host by default, if the
/// [`ValueSource`](crate::ValueSource) has them. Programs such as `npx` need some of them to start. They do not hold
/// secrets.
const INHERITED_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
    "APPDATA",
];

/// The configuration of a server.
///
/// The defaults are safe: the server receives no headers, tokens or context values, and no answers to its own requests.
/// A process inherits only the few environment variables that programs need to start, such as `PATH` and `HOME`.
///
/// ```
/// use toolwit_mcp_client::{ServerConfig, SettingValue};
///
/// let github = ServerConfig::process("github", "npx")?
///     .with_arguments(["-y", "@modelcontextprotocol/server-github"])
///     .with_variable("GITHUB_TOKEN", SettingValue::secret("github-token"));
/// let docs = ServerConfig::http("docs", "https://docs.example.com/mcp")?.with_bearer(SettingValue::context("docs_token"));
/// # let _ = (github, docs);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Name of the server, which is part of the ids of its tools: `mcp:NAME#tool`.
    pub name: String,
    /// Purpose of the server's tools, for facades and lists.
    pub description: Option<String>,
    /// The child process or the URL of the server.
    pub endpoint: ServerEndpoint,
    /// Whether the server is required: a conversation must not start without it.
    pub is_required: bool,
    /// The tools that are used.
    pub tools: ToolFilter,
    /// Whether the server's resources can be listed and read with tools.
    pub has_resource_tools: bool,
    /// Whether the server's prompts can be listed and read with tools.
    pub has_prompt_tools: bool,
    /// The values of the caller's context that the server receives as `_meta`. Keys that a [`SettingValue`] of the server
    /// uses are never sent.
    pub meta: MetaFilter,
    /// Directories that the server receives as roots, if it requests them. Relative paths are left out.
    pub roots: Vec<PathBuf>,
    /// Maximum time in which a call neither ends nor reports progress.
    pub timeout: Duration,
    /// Maximum time to start the server and to agree on a revision.
    pub startup_timeout: Duration,
    /// The revisions of the protocol that the client tries.
    pub revision: RevisionChoice,
    /// The treatment of a tool whose definition changes.
    pub changed_tools: ChangedTools,
    /// Names of properties that are handles: ids that some tools return and others take. By default, there are no handles.
    pub handles: Vec<String>,
}

/// The revisions of the protocol that the client tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RevisionChoice {
    /// The newest revision that both sides support.
    #[default]
    #[serde(rename = "auto")]
    Newest,
    /// Revisions up to 2025-11-25, which begin with a handshake.
    #[serde(rename = "2025-11-25")]
    Handshake,
    /// Revision 2026-07-28, in which each request is independent.
    #[serde(rename = "2026-07-28")]
    Stateless,
}

/// The treatment of a tool whose definition changes after it was first listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedTools {
    /// The tool is withheld until [`McpServer::accept_changes`](crate::McpServer::accept_changes) is called, because users
    /// approved only the earlier definition.
    #[default]
    Withhold,
    /// The new definition is used.
    Follow,
}

impl ServerConfig {
    /// Configures a server that is started as a child process.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid name, and for a program that is empty or contains a NUL character.
    pub fn process(name: &str, program: &str) -> Result<Self, Error> {
        if program.is_empty() || program.contains('\0') {
            return Err(configuration_error(
                name,
                "its program must not be empty or contain a NUL character",
            ));
        }
        let endpoint = ProcessEndpoint {
            program: program.to_owned(),
            arguments: Vec::new(),
            has_visible_secrets: false,
            variables: Vec::new(),
            inherited: INHERITED_VARIABLES.iter().map(ToString::to_string).collect(),
            directory: None,
        };
        Self::new(name, ServerEndpoint::Process(endpoint))
    }

    /// Configures a server that is reached over HTTP. Plain HTTP is for loopback addresses only.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid name, and for a URL that cannot be used.
    pub fn http(name: &str, url: &str) -> Result<Self, Error> {
        let url_error = |why: &str| configuration_error(name, &format!("its URL cannot be used: {why}"));
        let parsed = Url::parse(url).map_err(|error| url_error(&error.to_string()))?;
        check_address(&parsed).map_err(url_error)?;
        let endpoint = HttpEndpoint {
            url: parsed,
            headers: Vec::new(),
            bearer: None,
            oauth: None,
            login: Box::default(),
        };
        Self::new(name, ServerEndpoint::Http(endpoint))
    }

    fn new(name: &str, endpoint: ServerEndpoint) -> Result<Self, Error> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            description: None,
            endpoint,
            is_required: false,
            tools: ToolFilter::default(),
            has_resource_tools: false,
            has_prompt_tools: false,
            meta: MetaFilter::nothing(),
            roots: Vec::new(),
            timeout: MCP_CALL_WALL_MAX,
            startup_timeout: MCP_STARTUP_WALL_MAX,
            revision: RevisionChoice::default(),
            changed_tools: ChangedTools::default(),
            handles: Vec::new(),
        })
    }

    /// Sets the arguments of the process. Ignored for a server over HTTP.
    #[must_use]
    pub fn with_arguments<A: Into<SettingValue>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        if let ServerEndpoint::Process(process) = &mut self.endpoint {
            process.arguments = arguments.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Adds an environment variable of the process. Ignored for a server over HTTP.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<SettingValue>) -> Self {
        if let ServerEndpoint::Process(process) = &mut self.endpoint {
            process.variables.push((name.into(), value.into()));
        }
        self
    }

    /// Sets the working directory of the process. Ignored for a server over HTTP.
    #[must_use]
    pub fn with_directory(mut self, path: impl Into<PathBuf>) -> Self {
        if let ServerEndpoint::Process(process) = &mut self.endpoint {
            process.directory = Some(path.into());
        }
        self
    }

    /// Adds a header to every request. Ignored for a process.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<SettingValue>) -> Self {
        if let ServerEndpoint::Http(http) = &mut self.endpoint {
            http.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Allows secrets and values of the context in the arguments, which every user of the machine can read while the process runs.
    /// Ignored for a server over HTTP.
    #[must_use]
    pub fn with_visible_secrets(mut self) -> Self {
        if let ServerEndpoint::Process(process) = &mut self.endpoint {
            process.has_visible_secrets = true;
        }
        self
    }

    /// Sets the bearer token of every request. Ignored for a process.
    #[must_use]
    pub fn with_bearer(mut self, token: impl Into<SettingValue>) -> Self {
        if let ServerEndpoint::Http(http) = &mut self.endpoint {
            http.bearer = Some(token.into());
        }
        self
    }

    /// Sets the OAuth client that obtains the tokens if no bearer token is set. Ignored for a process.
    #[must_use]
    pub fn with_oauth(mut self, client: OauthClient) -> Self {
        if let ServerEndpoint::Http(http) = &mut self.endpoint {
            http.oauth = Some(Box::new(client));
        }
        self
    }

    /// Sets the settings for the login of a user. Ignored for a process.
    #[must_use]
    pub fn with_login(mut self, login: OauthLogin) -> Self {
        if let ServerEndpoint::Http(http) = &mut self.endpoint {
            *http.login = login;
        }
        self
    }

    /// Sets the description: the purpose of the server's tools.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Makes the server required: a conversation must not start without it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Sets which tools are used.
    #[must_use]
    pub fn with_tools(mut self, tools: ToolFilter) -> Self {
        self.tools = tools;
        self
    }

    /// Adds tools that list and read the resources of the server.
    #[must_use]
    pub fn with_resource_tools(mut self) -> Self {
        self.has_resource_tools = true;
        self
    }

    /// Adds tools that list and read the prompts of the server.
    #[must_use]
    pub fn with_prompt_tools(mut self) -> Self {
        self.has_prompt_tools = true;
        self
    }

    /// Sets which values of the caller's context the server receives.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Into<MetaFilter>) -> Self {
        self.meta = meta.into();
        self
    }

    /// Sets the directories that the server receives as roots.
    #[must_use]
    pub fn with_roots<P: Into<PathBuf>>(mut self, roots: impl IntoIterator<Item = P>) -> Self {
        self.roots = roots.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the maximum time in which a call neither ends nor reports progress.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum time to start the server and to agree on a revision.
    #[must_use]
    pub fn with_startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// Sets the revisions of the protocol that the client tries.
    #[must_use]
    pub fn with_revision(mut self, revision: RevisionChoice) -> Self {
        self.revision = revision;
        self
    }

    /// Sets the treatment of a tool whose definition changes.
    #[must_use]
    pub fn with_changed_tools(mut self, policy: ChangedTools) -> Self {
        self.changed_tools = policy;
        self
    }

    /// Sets the names of the properties that are handles, such as `order_id`. A result with a handle becomes an entity whose methods
    /// are the tools that take this handle.
    #[must_use]
    pub fn with_handles<H: Into<String>>(mut self, handles: impl IntoIterator<Item = H>) -> Self {
        self.handles = handles.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the settings of the endpoint, with their names. Arguments of a process have an empty name.
    pub(crate) fn settings(&self) -> Vec<(&str, &SettingValue)> {
        match &self.endpoint {
            ServerEndpoint::Process(process) => {
                let arguments = process.arguments.iter().map(|setting| ("", setting));
                let variables = process.variables.iter().map(|(name, setting)| (name.as_str(), setting));
                arguments.chain(variables).collect()
            }
            ServerEndpoint::Http(http) => {
                let bearer = http.bearer.iter().map(|setting| ("bearer", setting));
                let headers = http.headers.iter().map(|(name, setting)| (name.as_str(), setting));
                let oauth = http.oauth.iter().flat_map(|client| client.secret_settings());
                let login_secret = http.login.client_secret.iter();
                let login_secret = login_secret.map(|setting| ("client_secret", setting));
                bearer.chain(headers).chain(oauth).chain(login_secret).collect()
            }
        }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > SERVER_NAME_BYTES_MAX || !name.chars().all(is_allowed) {
        let name: String = name.escape_debug().take(SERVER_NAME_BYTES_MAX).collect();
        let why =
            format!("a name must consist of 1 to {SERVER_NAME_BYTES_MAX} ASCII letters, digits, `-`, `_` and `.`");
        return Err(configuration_error(&name, &why));
    }
    Ok(())
}

/// Returns the error of a server with an invalid configuration.
pub(super) fn configuration_error(name: &str, why: &str) -> Error {
    let message = format!("the MCP server `{name}` cannot be configured: {why}");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}

#[cfg(test)]
mod tests;
