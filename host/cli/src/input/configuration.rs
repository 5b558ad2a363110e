//! Files in the user's configuration directory.

use std::path::PathBuf;

use toolwit::{Error, ErrorKind, Phase};

/// Returns the path to a file in the configuration directory.
pub(crate) fn configuration_file(name: &str) -> Result<PathBuf, Error> {
    configuration_directory().map(|directory| directory.join(name))
}

/// Returns `toolwit/` of the user's configuration directory.
pub(crate) fn configuration_directory() -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            "the configuration directory is unknown, because there is no home directory",
        )
        .with_suggestion("pass the path of the file on the command line")
        .with_source(error)
    })?;
    Ok(base.config_dir().join("toolwit"))
}
