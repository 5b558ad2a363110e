//! The secrets file that a command uses.

use std::path::PathBuf;

use super::configuration::configuration_file;
use toolwit::Error;

/// Where secrets are.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SecretFlags {
    /// The file with the values of secrets [default: toolwit/secrets.toml of the user's settings]
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
