//! The MCP servers that a command uses.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::configuration::configuration_file;
use super::environment::variable;
use super::host_files::{add_programs, require_not_written_by_plugin};
use super::logins::UserLogins;
use super::paths::absolute;
use super::project_trust::ProjectTrust;
use super::secrets::SecretFlags;
use super::servers_file::read_config;
use toolwit::mcp::{ClientOptions, McpConfig, McpServers, ValueSource};
use toolwit::sandbox::SecretStore;
use toolwit::{Error, ErrorKind, Phase};

/// The name of the file with the user's MCP servers, in the configuration directory.
const USER_FILE: &str = "mcp.toml";

/// Options for the MCP servers.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpFlags {
    /// Path to a file with MCP servers: TOML, or the JSON configuration of another MCP client; can be repeated
    /// [default: toolwit/mcp.toml in the configuration directory, and the accepted servers of the project]
    #[arg(long = "mcp", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do not use any MCP servers
    #[arg(long, conflicts_with = "files")]
    no_mcp: bool,
}

impl McpFlags {
    /// Returns the flags for use in another directory: with absolute paths.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let files = self.files.iter().map(|file| absolute(file));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            no_mcp: self.no_mcp,
        })
    }

    /// Returns the files that were passed with `--mcp`.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns whether `--mcp` or `--no-mcp` is given.
    pub(crate) fn is_set(&self) -> bool {
        self.no_mcp || !self.files.is_empty()
    }

    /// Returns the servers. Nothing is started or contacted. Logs a warning for each server that cannot be used.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub(crate) fn servers(&self, secrets: &SecretFlags) -> Result<McpServers, Error> {
        let config = self.config()?;
        for (_, error) in config.invalid_servers() {
            tracing::warn!("{}", error.message);
        }
        Ok(McpServers::new(&config, &Self::client_options(secrets)))
    }

    /// Returns the options of the MCP client: the secrets, environment variables and logins of the user. A server
    /// receives only those that its configuration names.
    pub(crate) fn client_options(secrets: &SecretFlags) -> ClientOptions {
        let options = ClientOptions::default().with_values(HostValues {
            secrets: secrets.path().ok().map(SecretStore::new),
        });
        match UserLogins::find() {
            Some(logins) => options.with_logins(logins),
            None => options,
        }
    }

    /// Returns the configuration of the servers.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub(crate) fn config(&self) -> Result<McpConfig, Error> {
        if self.no_mcp {
            return Ok(McpConfig::default());
        }
        if !self.files.is_empty() {
            let mut config = McpConfig::default();
            for file in &self.files {
                require_not_written_by_plugin(file)?;
                config = config.merged_with(read_config(file)?);
            }
            add_programs(&config);
            return Ok(config);
        }
        let user_file = configuration_file(USER_FILE).ok().filter(|file| file.exists());
        let user_config = user_file.map_or_else(|| Ok(McpConfig::default()), |file| read_config(&file))?;
        let project_config = ProjectTrust::find()?.accepted_servers();
        // A server of the user replaces a server of the project with the same name.
        let config = project_config.merged_with(user_config);
        add_programs(&config);
        Ok(config)
    }
}

/// The source of the values that a server's configuration names: the user's secrets, and the environment.
struct HostValues {
    secrets: Option<SecretStore>,
}

impl ValueSource for HostValues {
    fn secret(&self, name: &str) -> Result<Option<Zeroizing<String>>, Error> {
        match &self.secrets {
            Some(store) => Ok(store.value(name)?),
            None => Ok(None),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        variable(name)?.into_string().ok()
    }

    fn replace_secret(&self, name: &str, value: &str) -> Result<(), Error> {
        match &self.secrets {
            Some(store) => Ok(store.set(name, value).map(drop)?),
            None => {
                let message = format!("the secret `{name}` cannot be replaced: there is no secret store");
                Err(Error::new(ErrorKind::Configuration, Phase::Registry, message))
            }
        }
    }
}
