//! Paths in the user's configuration directory and data directory.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use toolwit::{Error, ErrorKind, Phase};

/// Returns the path to a file in the configuration directory.
pub(crate) fn configuration_file(name: &str) -> Result<PathBuf, Error> {
    configuration_directory().map(|directory| directory.join(name))
}

/// Returns the path to `toolwit/` in the user's configuration directory.
pub(crate) fn configuration_directory() -> Result<PathBuf, Error> {
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

/// Returns the path to `toolwit/` in the user's data directory, or `None` without a home directory.
pub(crate) fn data_directory() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join("toolwit"))
}

/// Returns the path to a file in the [data directory](data_directory), or `None` without a home directory.
pub(crate) fn data_path(name: &str) -> Option<PathBuf> {
    data_directory().map(|directory| directory.join(name))
}

/// Returns the path to the file with the messages that a person typed in chats, or `None` without a home directory.
pub(crate) fn chat_history_path() -> Option<PathBuf> {
    data_path("chat-history.txt")
}
