//! Files in the user's configuration directory.

use std::path::PathBuf;

use toolwit::{Error, ErrorKind, Phase};

/// A file among the user's settings.
pub(crate) fn configuration_file(name: &str) -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            "there is no home directory for settings",
        )
        .with_suggestion("name the file on the command line")
        .with_source(error)
    })?;
    Ok(base.config_dir().join("toolwit").join(name))
}
