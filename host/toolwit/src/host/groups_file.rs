//! Reads the tool groups of a `toolwit.toml`.

use std::path::Path;

use toolwit_agent::GroupsConfig;
use toolwit_core::file::read_text_file;
use toolwit_core::limits::PROJECT_BYTES_MAX;
use toolwit_core::{Error, ErrorKind, Phase};

/// Reads the tool groups of a `toolwit.toml`, in its tables `[groups.ROLE]`.
pub(super) fn read_groups(path: &Path) -> Result<GroupsConfig, Error> {
    let text = read_text_file(path, PROJECT_BYTES_MAX).map_err(|error| {
        let message = format!("the file of tool groups `{}` cannot be read: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message)
    })?;
    GroupsConfig::parse(&text)
}
