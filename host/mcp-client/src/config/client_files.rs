//! The JSON files in which other clients of the protocol configure servers.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::endpoint::ServerEndpoint;
use super::mcp_config::McpConfig;
use super::server_config::ServerConfig;
use crate::value::SettingValue;
use toolwit_core::text::parse_json;
use toolwit_core::{Error, ErrorKind, Phase};

/// A file of Claude Desktop, Claude Code, Cursor, and most other clients. In a file of VS Code, the key is `servers`.
#[derive(Deserialize)]
struct ClientFile {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, ClientServer>,
}

/// One server of a [`ClientFile`]. Further keys are ignored, because each client has its own.
#[derive(Deserialize)]
struct ClientServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "type", alias = "transport")]
    transport: Option<String>,
    #[serde(default)]
    disabled: bool,
}

/// Parses a file of another client. Disabled servers are left out.
pub(super) fn parse(text: &str) -> Result<McpConfig, Error> {
    let invalid = |why: String| {
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            format!("the MCP servers cannot be parsed: {why}"),
        )
        .with_suggestion("the file is `{\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": […]}}}`")
    };
    let value = parse_json(text).map_err(|error| invalid(error.to_string()))?;
    let file: ClientFile = serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    let mut config = McpConfig::default();
    for (name, server) in file.servers {
        if !server.disabled {
            config = config.with_server(server.into_config(&name)?);
        }
    }
    Ok(config)
}

impl ClientServer {
    fn into_config(self, name: &str) -> Result<ServerConfig, Error> {
        let invalid = |why: &str| {
            let message = format!("the MCP server `{name}` cannot be configured: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        if self.transport.as_deref() == Some("sse") {
            return Err(invalid(
                "the transport `sse` is not supported; set the URL of its Streamable HTTP transport",
            ));
        }
        // The values may refer to environment variables, such as `Bearer ${TOKEN}`.
        let to_setting_values = |values: BTreeMap<String, String>| -> Vec<(String, SettingValue)> {
            let pairs = values.into_iter();
            pairs
                .map(|(name, value)| (name, SettingValue::from_template(&value)))
                .collect()
        };
        let mut config = match (&self.command, &self.url) {
            (Some(program), None) => ServerConfig::process(name, program)?,
            (None, Some(url)) => ServerConfig::http(name, url)?,
            _ => return Err(invalid("it must have either `command` or `url`")),
        };
        match &mut config.endpoint {
            ServerEndpoint::Process(process) => {
                process.arguments = self
                    .args
                    .iter()
                    .map(|argument| SettingValue::from_template(argument))
                    .collect();
                process.variables = to_setting_values(self.env);
                process.directory = self.cwd.map(Into::into);
            }
            ServerEndpoint::Http(http) => http.headers = to_setting_values(self.headers),
        }
        Ok(config)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_clients_are_parsed_and_invalid_files_are_refused() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server-filesystem", "${HOME}"], "env": {"KEY": "${KEY:-none}"}, "autoApprove": []},
            "docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "off": {"command": "x", "disabled": true}
        }, "other": 1}"#;
        let config = McpConfig::parse_json(text).unwrap();
        assert_eq!(config.names().collect::<Vec<_>>(), ["docs", "files"]);
        let debug_text = format!("{:?}", config.servers().collect::<Vec<_>>());
        assert!(
            debug_text.contains("Bearer {env TOKEN}") && debug_text.contains("{env HOME}"),
            "{debug_text}"
        );
        assert!(McpConfig::parse_json(r#"{"servers": {"a": {"command": "x"}}}"#).is_ok());
        for invalid in [
            "",
            "[]",
            "{}",
            r#"{"mcpServers": {"a": {}}}"#,
            r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#,
            r#"{"mcpServers": {"a": {"type": "sse", "url": "https://h/sse"}}}"#,
        ] {
            assert_eq!(
                McpConfig::parse_json(invalid).unwrap_err().kind,
                ErrorKind::Configuration,
                "{invalid}"
            );
        }
    }
}
