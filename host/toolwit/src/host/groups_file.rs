//! Reading a file with tool groups.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use toolwit_agent::GroupsConfig;
use toolwit_core::limits::{ByteCount, PROJECT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};

/// Reads the tool groups of a file.
pub(super) fn read_groups(path: &Path) -> Result<GroupsConfig, Error> {
    let text = read_limited(path).map_err(|error| {
        let message = format!("the tool groups `{}` cannot be read: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message)
    })?;
    GroupsConfig::parse(&text)
}

/// Reads a file of at most [`PROJECT_BYTES_MAX`].
fn read_limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(PROJECT_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if read as u64 > PROJECT_BYTES_MAX {
        let message = format!("it is larger than {}", ByteCount(PROJECT_BYTES_MAX));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
