//! The secrets file that a command uses.

use std::path::PathBuf;

use super::configuration::configuration_file;
use toolwit::Error;

/// Selects the secrets file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SecretFlags {
    /// Path to the secrets file [default: toolwit/secrets.toml in the user's configuration directory]
    #[arg(long = "secrets", value_name = "FILE", global = true)]
    secrets_file: Option<PathBuf>,
}

impl SecretFlags {
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        self.secrets_file
            .clone()
            .map_or_else(|| configuration_file("secrets.toml"), Ok)
    }
}
