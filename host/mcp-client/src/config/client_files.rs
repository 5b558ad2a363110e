//! The JSON files in which other clients of the protocol configure servers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use super::endpoint::ServerEndpoint;
use super::mcp_config::McpConfig;
use super::server_config::{ServerConfig, configuration_error};
use crate::value::SettingValue;
use toolwit_core::text::parse_json;
use toolwit_core::{Error, ErrorKind, Phase};

/// A file of Claude Desktop, Claude Code, Cursor, and most other clients. In a file of VS Code, the key is `servers`.
#[derive(Deserialize)]
struct ClientFile {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, Value>,
}

/// One server of a [`ClientFile`]. Further keys are ignored, because each client has its own.
#[derive(Deserialize)]
struct ClientServer {
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<PlainText>>,
    #[serde(default)]
    env: Option<BTreeMap<String, PlainText>>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: Option<BTreeMap<String, PlainText>>,
    #[serde(rename = "type", alias = "transport")]
    transport: Option<String>,
    #[serde(default)]
    disabled: Option<bool>,
}

/// A text, which can be written as a number or as a boolean.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a number or a boolean")]
enum PlainText {
    Text(String),
    Number(Number),
    Flag(bool),
}

impl PlainText {
    /// Returns the value. It may refer to environment variables, such as `Bearer ${TOKEN}`.
    fn into_setting_value(self) -> SettingValue {
        match self {
            Self::Text(text) => SettingValue::from_template(&text),
            Self::Number(number) => SettingValue::text(number.to_string()),
            Self::Flag(flag) => SettingValue::text(flag.to_string()),
        }
    }
}

/// Parses a file of another client. Disabled servers are left out. The file is shared with other clients, so one server that cannot
/// be used does not affect the others.
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
        match read_server(&name, server) {
            Ok(Some(server)) => config = config.with_server(server),
            Ok(None) => {}
            Err(error) => {
                config.invalid_servers.insert(name, error);
            }
        }
    }
    Ok(config)
}

/// Reads a server. Returns `None` for a disabled one.
fn read_server(name: &str, value: Value) -> Result<Option<ServerConfig>, Error> {
    let server: ClientServer =
        serde_json::from_value(value).map_err(|error| configuration_error(name, &error.to_string()))?;
    if server.disabled == Some(true) {
        return Ok(None);
    }
    server.into_config(name).map(Some)
}

impl ClientServer {
    fn into_config(self, name: &str) -> Result<ServerConfig, Error> {
        let invalid = |why: &str| configuration_error(name, why);
        if let Some(transport @ ("sse" | "ws" | "websocket")) = self.transport.as_deref() {
            let why =
                format!("the transport `{transport}` is not supported; set the URL of its Streamable HTTP transport");
            return Err(invalid(&why));
        }
        let to_setting_values = |values: Option<BTreeMap<String, PlainText>>| -> Vec<(String, SettingValue)> {
            let pairs = values.unwrap_or_default().into_iter();
            pairs.map(|(name, value)| (name, value.into_setting_value())).collect()
        };
        let mut config = match (&self.command, &self.url) {
            (Some(program), None) => ServerConfig::process(name, program)?,
            (None, Some(url)) => ServerConfig::http(name, url)?,
            _ => return Err(invalid("it must have either `command` or `url`")),
        };
        match &mut config.endpoint {
            ServerEndpoint::Process(process) => {
                let arguments = self.args.unwrap_or_default().into_iter();
                process.arguments = arguments.map(PlainText::into_setting_value).collect();
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
            r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#,
        ] {
            assert_eq!(
                McpConfig::parse_json(invalid).unwrap_err().kind,
                ErrorKind::Configuration,
                "{invalid}"
            );
        }
    }

    #[test]
    fn one_server_that_cannot_be_used_does_not_affect_the_others() {
        let text = r#"{"mcpServers": {
            "good": {"command": "x", "args": ["--port", 8080], "env": {"PORT": 8080, "DEBUG": true}},
            "empty": {},
            "list": [],
            "old": {"type": "sse", "url": "https://h/sse"},
            "plain": {"url": "http://example.com/mcp"},
            "socket": {"type": "ws", "url": "wss://h/mcp"},
            "two words": {"command": "x"},
            "wrong": {"command": ["x"]}
        }}"#;
        let config = McpConfig::parse_json(&format!("\u{feff}{text}")).unwrap();
        assert_eq!(config.names().collect::<Vec<_>>(), ["good"]);
        let invalid: Vec<_> = config.invalid_servers().map(|(name, _)| name).collect();
        assert_eq!(
            invalid,
            ["empty", "list", "old", "plain", "socket", "two words", "wrong"]
        );
        let (_, error) = config.invalid_servers().find(|(name, _)| *name == "old").unwrap();
        assert!(
            error.message.contains("the transport `sse` is not supported"),
            "{error}"
        );
        let repaired = config.with_server(ServerConfig::process("old", "x").unwrap());
        assert!(repaired.invalid_servers().all(|(name, _)| name != "old"));
    }
}
