//! The secrets file that a command uses.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::configuration::configuration_file;
use super::paths::absolute_if_set;
use toolwit::Error;

/// Selects the secrets file.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretFlags {
    /// Path to the secrets file [default: toolwit/secrets.toml in the user's configuration directory]
    #[arg(long = "secrets", value_name = "FILE", global = true)]
    secrets_file: Option<PathBuf>,
}

impl SecretFlags {
    /// Returns the flags for use in another directory: with absolute paths.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let secrets_file = absolute_if_set(self.secrets_file.clone())?;
        Ok(Self { secrets_file })
    }

    /// Returns the path of the secrets file, which need not exist.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        self.secrets_file
            .clone()
            .map_or_else(|| configuration_file("secrets.toml"), Ok)
    }
}
