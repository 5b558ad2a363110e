//! The configurations of all servers, and their tables `[mcp.NAME]` in `mcp.toml` and `toolwit.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::de;
use serde::{Deserialize, Deserializer};

use super::client_files;
use super::endpoint::ServerEndpoint;
use super::meta_rule::MetaRule;
use super::oauth_table::{OauthConfig, OauthTable};
use super::server_config::{ChangedTools, RevisionChoice, ServerConfig};
use super::tool_filter::ToolFilter;
use crate::value::SettingValue;
use toolwit_core::limits::Span;
use toolwit_core::{Error, ErrorKind, Phase};

/// The configurations of the servers of a host, by name.
///
/// ```
/// use toolwit_mcp_client::McpConfig;
///
/// let config = McpConfig::parse(
///     r#"
///     [mcp.github]
///     command = "npx"
///     args = ["-y", "@modelcontextprotocol/server-github"]
///     env = { GITHUB_TOKEN = { secret = "github-token" } }
///
///     [mcp.docs]
///     url = "https://docs.example.com/mcp"
///     bearer = { env = "DOCS_TOKEN" }
///     include = ["^search_"]
///     "#,
/// )?;
/// assert_eq!(config.names().collect::<Vec<_>>(), ["docs", "github"]);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    pub(super) servers: BTreeMap<String, ServerConfig>,
    /// The servers of a file of another client that cannot be used.
    pub(super) invalid_servers: BTreeMap<String, Error>,
}

/// The part of a file that configures servers.
#[derive(Deserialize)]
struct ServersFile {
    #[serde(default)]
    mcp: BTreeMap<String, ServerTable>,
}

/// The table of one server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    command: Option<String>,
    #[serde(default)]
    args: Vec<SettingValue>,
    #[serde(default)]
    env: BTreeMap<String, SettingValue>,
    #[serde(default)]
    visible_secrets: bool,
    inherit: Option<Vec<String>>,
    directory: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, SettingValue>,
    bearer: Option<SettingValue>,
    oauth: Option<OauthTable>,
    description: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    resources: bool,
    #[serde(default)]
    prompts: bool,
    #[serde(default)]
    meta: MetaRule,
    #[serde(default)]
    roots: Vec<PathBuf>,
    #[serde(default, deserialize_with = "deserialize_timeout")]
    timeout: Option<Duration>,
    #[serde(default, deserialize_with = "deserialize_timeout")]
    startup_timeout: Option<Duration>,
    #[serde(default)]
    revision: RevisionChoice,
    #[serde(default)]
    changed_tools: ChangedTools,
    #[serde(default)]
    handles: Vec<String>,
}

fn deserialize_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let span: Span = text.parse().map_err(de::Error::custom)?;
    if span.0.is_zero() {
        return Err(de::Error::custom("a timeout must be longer than zero"));
    }
    Ok(Some(span.0))
}

impl McpConfig {
    /// Parses the tables `[mcp.NAME]` of an `mcp.toml` or a `toolwit.toml`. Other tables are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid server, for invalid TOML, and for unknown keys.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: ServersFile = toml::from_str(text).map_err(|error| {
            let message = format!("the MCP servers cannot be parsed: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message.trim_end())
                .with_suggestion("see `docs/src/mcp-client.md` for the keys of a server")
        })?;
        let servers = file.mcp.into_iter().map(|(name, server)| {
            let config = server.into_config(&name)?;
            Ok((name, config))
        });
        Ok(Self {
            servers: servers.collect::<Result<_, Error>>()?,
            invalid_servers: BTreeMap::new(),
        })
    }

    /// Parses the JSON that other clients use: `{"mcpServers": {"NAME": {"command", "args", "env", "url",
    /// "headers"}}}`. The key can also be `servers`. `${NAME}` and `${NAME:-default}` stand for environment variables in
    /// arguments, in the values of `env` and in headers. Disabled servers are left out. Unknown keys are ignored,
    /// because each client has its own. A server that cannot be used is one of the
    /// [`invalid_servers`](Self::invalid_servers), and does not affect the others.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for text of another form.
    pub fn parse_json(text: &str) -> Result<Self, Error> {
        client_files::parse(text)
    }

    /// Adds a server. The server replaces an earlier one with the same name.
    #[must_use]
    pub fn with_server(mut self, server: ServerConfig) -> Self {
        self.invalid_servers.remove(&server.name);
        self.servers.insert(server.name.clone(), server);
        self
    }

    /// Adds the servers of another configuration, which replace those with the same names.
    #[must_use]
    pub fn merged_with(mut self, other: Self) -> Self {
        let is_replaced = |name: &String| other.servers.contains_key(name) || other.invalid_servers.contains_key(name);
        self.servers.retain(|name, _| !is_replaced(name));
        self.invalid_servers.retain(|name, _| !is_replaced(name));
        self.servers.extend(other.servers);
        self.invalid_servers.extend(other.invalid_servers);
        self
    }

    /// Returns the names of the servers, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Returns the servers, in alphabetical order of their names.
    pub fn servers(&self) -> impl Iterator<Item = &ServerConfig> {
        self.servers.values()
    }

    /// Returns the names of the servers that cannot be used, with the reasons, in alphabetical order.
    pub fn invalid_servers(&self) -> impl Iterator<Item = (&str, &Error)> {
        self.invalid_servers.iter().map(|(name, error)| (name.as_str(), error))
    }

    /// Returns whether there are no servers that can be used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }
}

impl ServerTable {
    fn into_config(self, name: &str) -> Result<ServerConfig, Error> {
        let invalid = |why: &str| {
            let message = format!("the MCP server `{name}` cannot be configured: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let has_process_keys = !self.args.is_empty()
            || !self.env.is_empty()
            || self.inherit.is_some()
            || self.directory.is_some()
            || self.visible_secrets;
        let mut config = match (&self.command, &self.url) {
            (Some(_), None) if !self.headers.is_empty() || self.bearer.is_some() || self.oauth.is_some() => {
                return Err(invalid(
                    "`headers`, `bearer` and `oauth` belong to a server with a `url`",
                ));
            }
            (Some(program), None) => ServerConfig::process(name, program)?,
            (None, Some(_)) if has_process_keys => {
                return Err(invalid(
                    "`args`, `env`, `inherit`, `directory` and `visible_secrets` belong to a server with a `command`",
                ));
            }
            (None, Some(_)) if self.bearer.is_some() && self.oauth.is_some() => {
                return Err(invalid("it must not have both `bearer` and `oauth`"));
            }
            (None, Some(url)) => ServerConfig::http(name, url)?,
            _ => return Err(invalid("it must have either `command` or `url`")),
        };
        match &mut config.endpoint {
            ServerEndpoint::Process(process) => {
                process.arguments = self.args;
                process.has_visible_secrets = self.visible_secrets;
                process.variables = self.env.into_iter().collect();
                process.directory = self.directory;
                if let Some(inherited) = self.inherit {
                    process.inherited = inherited;
                }
            }
            ServerEndpoint::Http(http) => {
                http.headers = self.headers.into_iter().collect();
                http.bearer = self.bearer;
                match self.oauth.map(OauthTable::into_config).transpose() {
                    Ok(Some(OauthConfig::Client(client))) => http.oauth = Some(Box::new(client)),
                    Ok(Some(OauthConfig::Login(login))) => *http.login = login,
                    Ok(None) => {}
                    Err(why) => return Err(invalid(&why)),
                }
            }
        }
        let as_str = String::as_str;
        config.tools = ToolFilter::parse(self.include.iter().map(as_str), self.exclude.iter().map(as_str))?;
        config.description = self.description;
        config.is_required = self.required;
        config.has_resource_tools = self.resources;
        config.has_prompt_tools = self.prompts;
        config.meta = self.meta.into();
        config.roots = self.roots;
        config.timeout = self.timeout.unwrap_or(config.timeout);
        config.startup_timeout = self.startup_timeout.unwrap_or(config.startup_timeout);
        config.revision = self.revision;
        config.changed_tools = self.changed_tools;
        config.handles = self.handles;
        Ok(config)
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn invalid_server_tables_are_refused() {
        for text in [
            "[mcp.a]\n",
            "[mcp.a]\ncommand = 'x'\nurl = 'https://h/'\n",
            "[mcp.a]\ncommand = 'x'\nbearer = 'b'\n",
            "[mcp.a]\nurl = 'https://h/'\nargs = ['x']\n",
            "[mcp.a]\nurl = 'https://h/'\nvisible_secrets = true\n",
            "[mcp.a]\ncommand = 'x'\ncomand = 'y'\n",
            "[mcp.a]\ncommand = 'x'\ntimeout = '0s'\n",
            "[mcp.a]\ncommand = 'x'\ntimeout = 5\n",
            "[mcp.a]\ncommand = 'x'\ninclude = ['(']\n",
            "[mcp.'a b']\ncommand = 'x'\n",
            "[mcp.a]\nurl = 'http://example.com/'\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { issuer = 'https://i', client_secret = 's' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { login = true, client_secret = 's' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { login = true, refresh_token = 'r' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { issuer = 'http://example.com' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { client_metadata_url = 'http://127.0.0.1/client.json' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { step_up_scopes = ['a'] }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { issuer = 'http://example.com', client_id = 'c', client_secret = 's' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { issuer = 'https://i', client_id = '', client_secret = 's' }\n",
            "[mcp.a]\nurl = 'https://h/'\noauth = { issuer = 'https://i', client_id = 'c', client_secret = 's', scopes = ['a b'] }\n",
            "[mcp.a]\nurl = 'https://h/'\nbearer = 'b'\noauth = { issuer = 'https://i', client_id = 'c', client_secret = 's' }\n",
            "[mcp.a]\ncommand = 'x'\noauth = { issuer = 'https://i', client_id = 'c', client_secret = 's' }\n",
            "[mcp.a]\ncommand = 'x'\nrevision = '1999-01-01'\n",
        ] {
            assert_eq!(
                McpConfig::parse(text).unwrap_err().kind,
                ErrorKind::Configuration,
                "{text}"
            );
        }
    }

    #[test]
    fn the_table_of_a_process_becomes_its_configuration() {
        let config = McpConfig::parse(
            "[mcp.a]\ncommand = 'x'\nargs = ['1']\nenv = { K = { secret = 's' } }\ninherit = []\nrequired = true\nexclude = ['^rm']\n\
             resources = true\nprompts = true\nmeta = { allow = ['tenant'] }\nroots = ['/srv']\ntimeout = '5s'\nstartup_timeout = '1m'\n\
             revision = '2026-07-28'\nchanged_tools = 'follow'\nhandles = ['order_id']\ndescription = 'A.'\n\n[other]\nx = 1\n",
        )
        .unwrap();
        let server = config.servers().next().unwrap();
        assert!(server.is_required && server.has_resource_tools && server.has_prompt_tools);
        assert!(!server.tools.accepts("rm_all") && server.tools.accepts("add"));
        assert_eq!(server.timeout, Duration::from_secs(5));
        assert_eq!(server.revision, RevisionChoice::Stateless);
        assert_eq!(server.changed_tools, ChangedTools::Follow);
        assert_eq!(server.handles, ["order_id"]);
        let ServerEndpoint::Process(process) = &server.endpoint else {
            panic!("the endpoint must be a process");
        };
        assert_eq!(process.variables, [("K".to_owned(), SettingValue::secret("s"))]);
        assert!(process.inherited.is_empty());
    }
}
