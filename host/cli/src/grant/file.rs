//! The location of the grants file.

use std::path::PathBuf;

use crate::environment::variable;
use toolwit::grants::Grants;
use toolwit::sandbox::GrantsFile;
use toolwit::{Error, ErrorKind, Phase};

/// The variable that names the file when no flag does.
const VARIABLE: &str = "TOOLWIT_GRANTS";

/// Options for the grants file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrantFlags {
    /// Path to the grants file [env: TOOLWIT_GRANTS] [default: toolwit/grants.toml in the configuration directory]
    #[arg(long = "grants", value_name = "FILE")]
    grants_file: Option<PathBuf>,
}

impl GrantFlags {
    /// Returns the file, which need not exist.
    pub(super) fn file(&self) -> Result<GrantsFile, Error> {
        self.path().map(GrantsFile::new)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        match self.named() {
            Some(path) => Ok(path),
            None => settings_file("grants.toml"),
        }
    }

    /// Returns the file that plugins run under. A named file must exist; the default one need not.
    pub(crate) fn existing(&self) -> Option<PathBuf> {
        self.named()
            .or_else(|| settings_file("grants.toml").ok().filter(|file| file.exists()))
    }

    /// Reads the grants that plugins run under.
    pub(crate) fn read(&self) -> Result<Grants, Error> {
        let Some(path) = self.existing() else {
            return Ok(Grants::default());
        };
        if !path.exists() {
            let message = format!("the grants file {} does not exist", path.display());
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        Ok(GrantsFile::new(path).read()?)
    }

    fn named(&self) -> Option<PathBuf> {
        self.grants_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}

/// Returns the path of a file in the user's configuration directory.
pub(crate) fn settings_file(name: &str) -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            "the home directory is unknown, and with it the configuration directory",
        )
        .with_suggestion("name the file on the command line")
        .with_source(error)
    })?;
    Ok(base.config_dir().join("toolwit").join(name))
}
