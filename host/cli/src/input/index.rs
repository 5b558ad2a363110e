//! The index of packages that can be added by name.

use super::configuration::configuration_file;
use super::environment::variable;
use super::project_trust::ProjectTrust;
use toolwit::Error;
use toolwit::registry::{IndexSettings, RemoteFile};

/// The environment variable with the URL of the index. The option `--index` takes precedence.
const VARIABLE: &str = "TOOLWIT_INDEX";

/// Options for the package index.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct IndexFlags {
    /// URL of the package index, with #sha256=DIGEST to accept only this content [env: TOOLWIT_INDEX] [default: the
    /// accepted one of the project, or toolwit/index.toml in the configuration directory]
    #[arg(long = "index", value_name = "URL")]
    index_url: Option<String>,
}

impl IndexFlags {
    /// Returns the first index that is set: by the option, the environment, the accepted project or the user. `None` if
    /// none is set.
    pub(crate) fn index(&self) -> Result<Option<RemoteFile>, Error> {
        let from_environment = || variable(VARIABLE).map(|url| url.to_string_lossy().into_owned());
        if let Some(url) = self.index_url.clone().or_else(from_environment) {
            return RemoteFile::parse(&url).map(Some);
        }
        let project = ProjectTrust::find()?;
        project.warn();
        if let Some(url) = project.accepted_index() {
            return Ok(Some(url.clone()));
        }
        match configuration_file("index.toml") {
            Ok(file) => Ok(IndexSettings::read(&file)?.url),
            // Without a home directory, there is no configuration of the user.
            Err(_) => Ok(None),
        }
    }
}
