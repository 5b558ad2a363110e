//! The grants file that a command uses.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::configuration::configuration_file;
use super::environment::variable;
use super::paths::absolute_if_set;
use super::project_trust::ProjectTrust;
use toolwit::grants::Grants;
use toolwit::sandbox::GrantsFile;
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path of the grants file. The option `--grants` takes precedence.
const VARIABLE: &str = "TOOLWIT_GRANTS";

/// Options for the grants file.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GrantFlags {
    /// Path to the grants file [env: TOOLWIT_GRANTS] [default: the accepted grants of the project, or
    /// toolwit/grants.toml in the configuration directory]
    #[arg(long = "grants", value_name = "FILE")]
    grants_file: Option<PathBuf>,
}

impl GrantFlags {
    /// Selects the grants file that a trace names.
    pub(crate) fn with_recorded(mut self, file: &str) -> Self {
        self.grants_file = Some(PathBuf::from(file));
        self
    }

    /// Returns the flags for use in another directory: with absolute paths, and with the file of the environment. The
    /// accepted grants of a project are not included, because they apply only in its directory.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let grants_file = absolute_if_set(self.explicit_path())?;
        Ok(Self { grants_file })
    }

    /// Returns the file that the options or the environment name, if any.
    pub(crate) fn named_file(&self) -> Option<PathBuf> {
        self.explicit_path()
    }

    /// Returns the grants file, which need not exist.
    pub(crate) fn file(&self) -> Result<GrantsFile, Error> {
        self.path().map(GrantsFile::new)
    }

    /// Returns the path of the grants file, which need not exist.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        match self.chosen_path()? {
            Some(path) => Ok(path),
            None => configuration_file("grants.toml"),
        }
    }

    /// Returns the path of the grants that apply to plugins. An explicit path is returned even if the file does not
    /// exist, the default path only if it does.
    pub(crate) fn applied_path(&self) -> Result<Option<PathBuf>, Error> {
        let chosen = self.chosen_path()?;
        Ok(chosen.or_else(|| configuration_file("grants.toml").ok().filter(|file| file.exists())))
    }

    /// Returns the explicit path, or that of the accepted grants of the project. `None` if there is neither.
    fn chosen_path(&self) -> Result<Option<PathBuf>, Error> {
        match self.explicit_path() {
            Some(path) => Ok(Some(path)),
            None => Ok(ProjectTrust::find()?.accepted_grants()),
        }
    }

    /// Reads the grants that apply to plugins.
    pub(crate) fn read(&self) -> Result<Grants, Error> {
        let Some(path) = self.applied_path()? else {
            return Ok(Grants::default());
        };
        if !path.exists() {
            let message = format!("the grants file {} does not exist", path.display());
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        Ok(GrantsFile::new(path).read()?)
    }

    fn explicit_path(&self) -> Option<PathBuf> {
        self.grants_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}
