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
    pub(crate) fn with_recorded_file(mut self, file: &str) -> Self {
        self.grants_file = Some(PathBuf::from(file));
        self
    }

    /// Returns the flags for use in another directory: with an absolute path. If the option is not set, the path from the
    /// environment variable is filled in. The accepted grants of a project are not included, because they apply only in
    /// its directory.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let grants_file = absolute_if_set(self.named_file())?;
        Ok(Self { grants_file })
    }

    /// Returns the path of the file that the option or the environment names, if any.
    pub(crate) fn named_file(&self) -> Option<PathBuf> {
        self.grants_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }

    /// Returns the grants file, which need not exist.
    pub(crate) fn file(&self) -> Result<GrantsFile, Error> {
        self.path().map(GrantsFile::new)
    }

    /// Returns the path of the grants file, which need not exist.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        match self.selected_path()? {
            Some(path) => Ok(path),
            None => configuration_file("grants.toml"),
        }
    }

    /// Returns the path of the grants file that applies to plugins. The default path is returned only if the file
    /// exists. A path that the option or the environment names is always returned.
    pub(crate) fn applied_path(&self) -> Result<Option<PathBuf>, Error> {
        let selected_path = self.selected_path()?;
        Ok(selected_path.or_else(|| configuration_file("grants.toml").ok().filter(|file| file.exists())))
    }

    /// Returns the path that the option or the environment names, or the path of the accepted grants of the project.
    /// `None` if there is neither.
    fn selected_path(&self) -> Result<Option<PathBuf>, Error> {
        match self.named_file() {
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
}
