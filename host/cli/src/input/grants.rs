//! The grants file that a command uses.

use std::path::PathBuf;

use super::configuration::configuration_file;
use super::environment::variable;
use toolwit::grants::Grants;
use toolwit::sandbox::read_grants_file;
use toolwit::{Error, ErrorKind, Phase};

/// Names the file for commands that are not told one.
const VARIABLE: &str = "TOOLWIT_GRANTS";

/// Where grants are.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrantFlags {
    /// The file of grants [env: TOOLWIT_GRANTS] [default: toolwit/grants.toml of the user's settings]
    #[arg(long = "grants", value_name = "FILE")]
    grants_file: Option<PathBuf>,
}

impl GrantFlags {
    /// The file, whether it is there or not.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        match self.named() {
            Some(file) => Ok(file),
            None => configuration_file("grants.toml"),
        }
    }

    /// The file that plugins run under: one that was named must be there, the user's own need not.
    pub(crate) fn existing(&self) -> Option<PathBuf> {
        self.named()
            .or_else(|| configuration_file("grants.toml").ok().filter(|file| file.exists()))
    }

    /// Reads the grants that hold; without a file there are none.
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

    fn named(&self) -> Option<PathBuf> {
        self.grants_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}
