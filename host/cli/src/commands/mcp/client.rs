//! The MCP clients that `toolwit mcp install` configures, and the paths of their configuration files.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::input::environment::variable;
use toolwit::{Error, ErrorKind, Phase};

/// An MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Client {
    /// Amazon Q Developer
    AmazonQ,
    /// Claude Code, for the project in the current directory
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// LM Studio
    LmStudio,
    /// opencode
    Opencode,
    /// Visual Studio Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

/// The form of the entry for a server in a client's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// `{"command": …, "args": […]}` under this key.
    Plain(&'static str),
    /// The fields of `Plain` and `"type": "stdio"`, under this key.
    Typed(&'static str),
    /// The program and its arguments in one list, under `mcp`.
    OneList,
    /// A table of a TOML file, under `mcp_servers`.
    Toml,
}

impl Client {
    /// Returns the form of a server's entry in the configuration of this client.
    pub(super) fn entry_form(self) -> EntryForm {
        match self {
            Self::Vscode => EntryForm::Typed("servers"),
            Self::ClaudeCode => EntryForm::Typed("mcpServers"),
            Self::Zed => EntryForm::Plain("context_servers"),
            Self::Opencode => EntryForm::OneList,
            Self::Codex => EntryForm::Toml,
            _ => EntryForm::Plain("mcpServers"),
        }
    }

    /// Returns the path of the client's configuration file. For Claude Code, the path is relative to the current
    /// directory.
    ///
    /// # Errors
    /// If the home directory is unknown.
    pub(super) fn configuration_path(self) -> Result<PathBuf, Error> {
        if self == Self::ClaudeCode {
            return Ok(PathBuf::from(".mcp.json"));
        }
        let base = etcetera::choose_base_strategy().map_err(|error| {
            let message = "the path of the client's configuration is unknown, because the home directory is unknown";
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("pass its path with `--file FILE`")
                .with_source(error)
        })?;
        let home = base.home_dir();
        let codex_home = variable("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
        Ok(match self {
            Self::AmazonQ => home.join(".aws/amazonq/mcp.json"),
            Self::ClaudeCode => PathBuf::from(".mcp.json"),
            Self::ClaudeDesktop => application_directory(&base).join("Claude/claude_desktop_config.json"),
            Self::Codex => codex_home.join("config.toml"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::LmStudio => home.join(".lmstudio/mcp.json"),
            Self::Opencode => base.config_dir().join("opencode/opencode.json"),
            Self::Vscode => application_directory(&base).join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => base.config_dir().join("zed/settings.json"),
        })
    }
}

/// Returns the directory with the configuration of desktop applications.
fn application_directory(base: &impl BaseStrategy) -> PathBuf {
    if cfg!(target_os = "macos") {
        base.home_dir().join("Library/Application Support")
    } else {
        base.config_dir()
    }
}
