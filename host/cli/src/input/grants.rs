//! The grants file that a command uses.

use std::path::PathBuf;

use super::configuration::configuration_file;
use super::environment::variable;
use toolwit::grants::Grants;
use toolwit::sandbox::read_grants_file;
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path to the grants file.
const VARIABLE: &str = "TOOLWIT_GRANTS";

/// Selects the grants file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrantFlags {
    /// Path to the grants file [env: TOOLWIT_GRANTS] [default: toolwit/grants.toml in the user's configuration directory]
    #[arg(long = "grants", value_name = "FILE")]
    grants_file: Option<PathBuf>,
}

impl GrantFlags {
    /// Returns the path to the grants file, which may not exist yet.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        match self.explicit_path() {
            Some(file) => Ok(file),
            None => configuration_file("grants.toml"),
        }
    }

    /// Returns the grants file for calls. An explicit path is returned even if the file does not exist, so that loading it fails.
    pub(crate) fn existing(&self) -> Option<PathBuf> {
        self.explicit_path()
            .or_else(|| configuration_file("grants.toml").ok().filter(|file| file.exists()))
    }

    /// Reads the grants. Returns no grants if there is no file.
    pub(crate) fn read(&self) -> Result<Grants, Error> {
        let Some(file) = self.existing() else {
            return Ok(Grants::default());
        };
        let wrong = |why: String| {
            let message = format!("the grants {} grant nothing: {why}", file.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let bytes = read_grants_file(&file).map_err(|error| wrong(error.to_string()))?;
        Grants::parse(&bytes).map_err(|error| wrong(error.to_string()))
    }

    fn explicit_path(&self) -> Option<PathBuf> {
        self.grants_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}
