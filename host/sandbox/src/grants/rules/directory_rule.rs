//! Rules for directories of the host.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::RuleError;
use super::value_rules::{format_quota, parse_quota};
use toolwit_core::limits::{ByteCount, DIRECTORY_BYTES_MAX};

/// The access of a plugin to a directory or to the blackboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessMode {
    /// List and read.
    #[default]
    Read,
    /// Read, write, create, rename and remove.
    ReadWrite,
}

impl FromStr for AccessMode {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text {
            "read" => Ok(Self::Read),
            "read-write" => Ok(Self::ReadWrite),
            _ => Err(RuleError::new(format!(
                "`{}` is not `read` or `read-write`",
                text.escape_debug()
            ))),
        }
    }
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        })
    }
}

/// A directory of the host, mounted at a path of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "DirectoryRuleFormat", into = "DirectoryRuleFormat")]
#[non_exhaustive]
pub struct DirectoryRule {
    /// The directory on the host. An absolute path, because a relative path would depend on the working directory of the host.
    pub host: PathBuf,
    /// The path at which the guest sees the directory. Absolute, without dot segments.
    pub guest: String,
    /// The access of the guest to the directory.
    pub access: AccessMode,
    /// The maximum size of the directory in bytes, enforced on writes of the plugin. Not used for a read-only directory.
    pub quota_bytes: u64,
}

/// The TOML format of a [`DirectoryRule`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DirectoryRuleFormat {
    host: String,
    guest: String,
    #[serde(default)]
    access: AccessMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<String>,
}

impl TryFrom<DirectoryRuleFormat> for DirectoryRule {
    type Error = RuleError;

    fn try_from(format: DirectoryRuleFormat) -> Result<Self, RuleError> {
        Self::new(&format.host, &format.guest, format.access, format.quota.as_deref())
    }
}

impl From<DirectoryRule> for DirectoryRuleFormat {
    fn from(rule: DirectoryRule) -> Self {
        let has_quota_key = rule.access == AccessMode::ReadWrite && rule.quota_bytes != DIRECTORY_BYTES_MAX;
        Self {
            host: rule.host.to_string_lossy().into_owned(),
            guest: rule.guest,
            access: rule.access,
            quota: has_quota_key.then(|| format_quota(rule.quota_bytes)),
        }
    }
}

impl DirectoryRule {
    /// Creates a rule. `quota` is a size such as `10MiB`, for [`AccessMode::ReadWrite`] only; the default is
    /// [`DIRECTORY_BYTES_MAX`].
    ///
    /// # Errors
    /// For a host path that is relative, is the root, or contains `..`, `~` at the start, `${` or NUL; for a guest path that
    /// is not absolute, or has dot segments, NUL, or doubled or trailing slashes; and for a quota that is not a size, or is
    /// for a read-only directory.
    pub fn new(host: &str, guest: &str, access: AccessMode, quota: Option<&str>) -> Result<Self, RuleError> {
        if host.starts_with('~') || host.contains("${") || host.contains('\0') {
            return Err(RuleError::new(format!(
                "`{}` starts with `~`, or contains `${{` or NUL: paths are not expanded, so write the full path",
                host.escape_debug()
            )));
        }
        let directory = PathBuf::from(host);
        if !directory.is_absolute()
            || directory
                .components()
                .any(|component| component == Component::ParentDir)
        {
            let host = host.escape_debug();
            return Err(RuleError::new(format!("`{host}` is not an absolute path without `..`")));
        }
        if directory.parent().is_none() {
            return Err(RuleError::new("the root of the file system cannot be granted"));
        }
        let quota_bytes = match (quota, access) {
            (Some(_), AccessMode::Read) => {
                return Err(RuleError::new("`quota` needs `access = \"read-write\"`"));
            }
            (Some(quota), AccessMode::ReadWrite) => parse_quota(quota)?,
            (None, _) => DIRECTORY_BYTES_MAX,
        };
        Ok(Self {
            host: directory,
            guest: parse_guest_path(guest)?,
            access,
            quota_bytes,
        })
    }

    /// Returns whether a guest path is the directory or is inside the directory. Compares complete names, case-sensitively.
    #[must_use]
    pub fn contains(&self, guest_path: &Path) -> bool {
        guest_path.starts_with(&self.guest)
    }
}

/// Parses a guest path, which must be absolute. Refuses dot segments, NUL, and doubled or trailing slashes.
fn parse_guest_path(text: &str) -> Result<String, RuleError> {
    let is_plain = text.starts_with('/')
        && !text.contains('\0')
        && (text == "/" || text[1..].split('/').all(|name| !matches!(name, "" | "." | "..")));
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err(RuleError::new(format!(
            "`{}` is not a plain path such as `/data`",
            text.escape_debug()
        )))
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
