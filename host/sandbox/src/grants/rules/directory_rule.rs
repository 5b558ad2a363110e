//! Which directories a grant opens.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::error::RuleError;
use toolwit_core::limits::ByteCount;

/// What a plugin may leave on disk when the grant does not say.
const QUOTA_BYTES: u64 = 64 << 20;

/// What a plugin may do in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AccessMode {
    /// List and read.
    #[default]
    Read,
    /// Read, write, make, rename and remove.
    ReadWrite,
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        })
    }
}

/// A directory of the host under a path of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawFsRule")]
#[non_exhaustive]
pub struct DirectoryRule {
    /// The directory. Absolute, since a relative one would depend on where the host was started.
    pub host: PathBuf,
    /// Where the guest sees it: absolute, without dots.
    pub guest: String,
    /// What it may do there.
    pub access: AccessMode,
    /// How much the directory may hold once the plugin has written.
    pub quota_bytes: u64,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawFsRule {
    host: String,
    guest: String,
    #[serde(default)]
    access: AccessMode,
    quota: Option<String>,
}

impl TryFrom<RawFsRule> for DirectoryRule {
    type Error = RuleError;

    fn try_from(raw: RawFsRule) -> Result<Self, RuleError> {
        if raw.host.starts_with('~') || raw.host.contains("${") || raw.host.contains('\0') {
            return Err(RuleError::new(format!(
                "`{}`: nothing is expanded here; write the whole path",
                raw.host.escape_debug()
            )));
        }
        let host = PathBuf::from(&raw.host);
        if !host.is_absolute() || host.components().any(|part| part == Component::ParentDir) {
            return Err(RuleError::new(format!(
                "`{}` is no absolute path without `..`",
                raw.host
            )));
        }
        if host.parent().is_none() {
            return Err(RuleError::new("the whole file system cannot be granted"));
        }
        let quota_bytes = match (&raw.quota, raw.access) {
            (Some(_), AccessMode::Read) => {
                return Err(RuleError::new("`quota` is for `access = \"read-write\"`"));
            }
            (Some(quota), AccessMode::ReadWrite) => {
                quota
                    .parse::<ByteCount>()
                    .map_err(|error| RuleError::new(error.to_string()))?
                    .0
            }
            (None, _) => QUOTA_BYTES,
        };
        Ok(Self {
            host,
            guest: guest_path(&raw.guest)?,
            access: raw.access,
            quota_bytes,
        })
    }
}

/// Reads a guest path without dots, doubled or trailing slashes.
fn guest_path(text: &str) -> Result<String, RuleError> {
    let is_plain = text.starts_with('/')
        && !text.contains('\0')
        && (text == "/" || text[1..].split('/').all(|part| !matches!(part, "" | "." | "..")));
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err(RuleError::new(format!(
            "`{}` is no plain path such as `/data`",
            text.escape_debug()
        )))
    }
}

impl DirectoryRule {
    /// Tells whether a guest's path is its directory or lies in it, on whole names and with their case.
    #[must_use]
    pub fn holds(&self, guest: &Path) -> bool {
        guest.starts_with(&self.guest)
    }
}

impl fmt::Display for DirectoryRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} as {}", self.access, self.host.display(), self.guest)?;
        if self.access == AccessMode::ReadWrite {
            write!(f, ", at most {}", ByteCount(self.quota_bytes))?;
        }
        Ok(())
    }
}
