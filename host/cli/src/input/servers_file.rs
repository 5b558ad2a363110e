//! Files with MCP servers.

use std::io;
use std::path::Path;

use toolwit::limits::MCP_CONFIG_BYTES_MAX;
use toolwit::mcp::McpConfig;
use toolwit::tool::file::read_text_file;
use toolwit::{Error, ErrorKind, Phase};

/// Reads a file with servers: JSON if the file name ends in `.json`, otherwise TOML.
pub(super) fn read_config(file: &Path) -> Result<McpConfig, Error> {
    let text = read_config_text(file)?;
    let is_json = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let config = if is_json {
        McpConfig::parse_json(&text)
    } else {
        McpConfig::parse(&text)
    };
    config.map_err(|error| {
        let message = format!("{}: {}", file.display(), error.message);
        let error_with_path = Error::new(error.kind, error.phase, message);
        match &error.suggestion {
            Some(suggestion) => error_with_path.with_suggestion(suggestion.clone()),
            None => error_with_path,
        }
    })
}

/// Reads the text of a file with servers. The file must be a regular file of at most [`MCP_CONFIG_BYTES_MAX`] bytes.
pub(super) fn read_config_text(file: &Path) -> Result<String, Error> {
    let read_error = |kind, reason: &dyn std::fmt::Display| {
        let message = format!("the MCP servers in {} cannot be read: {reason}", file.display());
        Error::new(kind, Phase::Registry, message)
    };
    read_text_file(file, MCP_CONFIG_BYTES_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => read_error(ErrorKind::Configuration, &error),
        _ => read_error(ErrorKind::Io, &error),
    })
}
