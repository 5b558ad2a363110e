//! The MCP servers that a project proposes, in its `toolwit.toml` and its `.mcp.json`.

use std::path::Path;

use super::servers_file::read_config_text;
use toolwit::mcp::{McpConfig, OauthClient, OauthLogin, ServerConfig, ServerEndpoint};
use toolwit::registry::Project;
use toolwit::tool::text::sha256;
use toolwit::{Error, ErrorKind, Phase};

/// The file in a project that configures MCP servers for other MCP clients.
pub(super) const MCP_JSON_FILE: &str = ".mcp.json";

/// The servers that a project proposes. The configuration of a server can start a program and pass values of the user's
/// environment to it. Therefore, no server is used before the user has accepted it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectServers {
    config: McpConfig,
    /// The digest of the text that configures the servers. `None` if there are no servers.
    digest: Option<String>,
}

impl ProjectServers {
    /// Reads the servers of the project in a directory. If `.mcp.json` cannot be read or is invalid, logs a warning and
    /// ignores the file.
    ///
    /// # Errors
    /// If `toolwit.toml` is invalid.
    pub(crate) fn read(directory: &Path) -> Result<Self, Error> {
        let (json_config, json_text) = read_mcp_json(&directory.join(MCP_JSON_FILE));
        let (toml_config, toml_text) = read_project_servers(&directory.join(Project::FILE_NAME))?;
        let config = json_config.merged_with(toml_config);
        // The length marks the end of the first text, so that different pairs of texts have different digests.
        let digest = (!config.is_empty()).then(|| sha256(&format!("{}:{toml_text}{json_text}", toml_text.len())));
        Ok(Self { config, digest })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.config.is_empty()
    }

    pub(crate) fn config(&self) -> &McpConfig {
        &self.config
    }

    /// Returns the digest of the configuration of all servers, or `None` without servers.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Describes each server in full: the program or the URL, and everything that the server receives.
    pub(crate) fn describe(&self) -> Vec<String> {
        self.config.servers().flat_map(describe_server).collect()
    }
}

/// Describes the program or the URL of a server, and each value that the server receives. A value may contain line
/// breaks.
fn describe_server(server: &ServerConfig) -> Vec<String> {
    let name = &server.name;
    let mut lines = Vec::new();
    match &server.endpoint {
        ServerEndpoint::Process(process) => {
            let arguments = process.arguments.iter().map(|argument| format!(" {argument:?}"));
            lines.push(format!(
                "{name} starts {}{}",
                process.program,
                arguments.collect::<String>()
            ));
            if let Some(directory) = &process.directory {
                lines.push(format!("{name} works in {}", directory.display()));
            }
            for (variable, value) in &process.variables {
                lines.push(format!("{name} has the variable {variable} = {value}"));
            }
            if !process.inherited.is_empty() {
                let inherited = process.inherited.join(", ");
                lines.push(format!("{name} has the variables {inherited} of the host"));
            }
        }
        ServerEndpoint::Http(http) => {
            lines.push(format!("{name} is at {}", http.url));
            lines.extend(
                http.bearer
                    .iter()
                    .map(|token| format!("{name} receives the token {token}")),
            );
            lines.extend(http.oauth.iter().flat_map(|client| describe_oauth(name, client)));
            lines.extend(describe_login(name, &http.login));
            for (header, value) in &http.headers {
                lines.push(format!("{name} receives the header {header}: {value}"));
            }
        }
        other => lines.push(format!("{name} is {other:?}")),
    }
    lines.push(format!("{name} receives the context values: {:?}", server.meta));
    if !server.roots.is_empty() {
        lines.push(format!("{name} receives the roots {:?}", server.roots));
    }
    lines
}

/// Describes the tokens that a server receives, and the secrets that the issuer of the tokens receives.
fn describe_oauth(name: &str, client: &OauthClient) -> Vec<String> {
    let issuer = &client.issuer;
    let mut lines = vec![format!(
        "{name} receives tokens of {issuer} for the client {}",
        client.client_id
    )];
    let scopes = [client.scopes.as_slice(), &client.step_up_scopes].concat();
    if !scopes.is_empty() {
        lines.push(format!("{name} receives tokens with the scopes {}", scopes.join(", ")));
    }
    let secret = client.client_secret.iter();
    lines.extend(secret.map(|secret| format!("{issuer} receives the client secret {secret}")));
    let token = client.refresh_token.iter();
    lines.extend(token.map(|token| format!("{issuer} receives the refresh token {token}")));
    lines
}

/// Describes the tokens that a server receives after a login, and the client and the secret that the issuer of the
/// tokens receives.
fn describe_login(name: &str, login: &OauthLogin) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(issuer) = &login.issuer {
        lines.push(format!("{name} receives tokens of a login at {issuer}"));
    }
    if !login.scopes.is_empty() {
        lines.push(format!(
            "{name} receives tokens of a login with the scopes {}",
            login.scopes.join(", ")
        ));
    }
    let metadata_url = login.client_metadata_url.as_ref().map(ToString::to_string);
    let client = login.client_id.clone().or(metadata_url);
    lines.extend(client.map(|client| format!("the issuer of {name} receives the client {client}")));
    let secret = login.client_secret.iter();
    lines.extend(secret.map(|secret| format!("the issuer of {name} receives the client secret {secret}")));
    lines
}

/// Reads the tables `[mcp.NAME]` of a `toolwit.toml`. Also returns their text, without the text of other tables.
fn read_project_servers(file: &Path) -> Result<(McpConfig, String), Error> {
    if !file.is_file() {
        return Ok((McpConfig::default(), String::new()));
    }
    let text = read_config_text(file)?;
    let config = McpConfig::parse(&text)?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let message = format!("{} cannot be parsed: {}", Project::FILE_NAME, error.message());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
    })?;
    let mcp_text = table.get("mcp").map(ToString::to_string).unwrap_or_default();
    Ok((config, mcp_text))
}

/// Reads a `.mcp.json`. Also returns its text. If the file cannot be used, logs a warning and returns no servers.
fn read_mcp_json(file: &Path) -> (McpConfig, String) {
    if !file.is_file() {
        return Default::default();
    }
    let config = read_config_text(file).and_then(|text| Ok((McpConfig::parse_json(&text)?, text)));
    config.unwrap_or_else(|error| {
        tracing::warn!(%error, "the servers in `{MCP_JSON_FILE}` are not used");
        Default::default()
    })
}
