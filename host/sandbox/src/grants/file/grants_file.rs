//! The grants file on disk: reading it, and adding and revoking grants.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item};

use super::format::NewGrant;
use super::private_file;
use crate::grants::directories::OpenDirectory;
use crate::grants::{Grants, GrantsError};
use toolwit_core::limits::GRANTS_BYTES_MAX;
use toolwit_core::{Error, ErrorKind, Phase};

/// The content of a file that does not exist yet.
const EMPTY_FILE: &str = "version = 1\n";

/// An operator's grants file.
///
/// Changes keep the comments and the order of the file. They replace it atomically under a lock, so that a reader sees the
/// old or the new content and concurrent changes are not lost. Each change is recorded in a log next to the file.
///
/// ```
/// use toolwit_sandbox::{GrantsFile, NewGrant};
/// use toolwit_sandbox::grants::{GrantRules, GrantScope, GrantedVersion, HttpRule};
///
/// # fn example(path: std::path::PathBuf) -> Result<(), Box<dyn std::error::Error>> {
/// let file = GrantsFile::new(path);
/// file.grant(&NewGrant {
///     plugin: "fetch".to_owned(),
///     version: GrantedVersion::Any,
///     scope: GrantScope::Always,
///     rules: GrantRules {
///         http: vec![HttpRule::parse("GET https://api.example.com/v1")?],
///         ..GrantRules::default()
///     },
/// })?;
/// assert_eq!(file.read()?.grants.len(), 1);
/// assert_eq!(file.revoke("fetch")?, 1);
/// # Ok(())
/// # }
/// # let directory = tempfile::tempdir().unwrap();
/// # example(directory.path().join("grants.toml")).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct GrantsFile {
    path: PathBuf,
}

/// A grants file that could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("the grants file {} {reason}", .path.display())]
pub struct GrantsFileError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: GrantsFileErrorReason,
}

/// The reason of a [`GrantsFileError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsFileErrorReason {
    /// The file could not be read.
    #[error("could not be read: {0}")]
    Read(#[source] io::Error),
    /// The file, its lock or its log could not be written.
    #[error("could not be changed: {0}")]
    Write(#[source] io::Error),
    /// The file is invalid.
    #[error("is invalid: {0}")]
    Invalid(#[source] GrantsError),
    /// The grants are an inline array, to which the host cannot add a grant.
    #[error("has its grants in one line; write each as a `[[grant]]` table")]
    InlineGrants,
    /// The file would be invalid with the new grant.
    #[error("cannot have this grant: {0}")]
    NotGrantable(String),
}

impl From<GrantsFileError> for Error {
    fn from(error: GrantsFileError) -> Self {
        Self::new(ErrorKind::Configuration, Phase::Registry, error.to_string()).with_source(error)
    }
}

impl GrantsFile {
    /// Creates a handle to the file at `path`. The file need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and checks the file. A file that does not exist grants nothing.
    ///
    /// # Errors
    /// [`GrantsFileErrorReason::Read`] and [`GrantsFileErrorReason::Invalid`].
    pub fn read(&self) -> Result<Grants, GrantsFileError> {
        Ok(self.read_text()?.1)
    }

    /// Adds a grant at the end of the file, which is created if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or changed, and [`GrantsFileErrorReason::NotGrantable`] for a rule that the host could not
    /// enforce, such as a directory that does not exist.
    pub fn grant(&self, grant: &NewGrant) -> Result<(), GrantsFileError> {
        let not_grantable = |why: String| self.error(GrantsFileErrorReason::NotGrantable(why));
        for rule in &grant.rules.files {
            // A directory that cannot be opened would make the file invalid for every plugin.
            OpenDirectory::check(rule, &[])
                .map_err(|error| not_grantable(format!("the directory `{}`: {error}", rule.host.display())))?;
        }
        let table = grant.to_table(now()).map_err(not_grantable)?;
        self.change("grant", &grant.plugin, &grant.rules.describe(), |grants| {
            grants.push(table)
        })
    }

    /// Removes all grants of a plugin. Returns the number of removed grants.
    ///
    /// # Errors
    /// If the file cannot be read or changed.
    pub fn revoke(&self, plugin: &str) -> Result<usize, GrantsFileError> {
        let mut removed = 0;
        self.change("revoke", plugin, &[], |grants| {
            let before = grants.len();
            grants.retain(|grant| grant.get("plugin").and_then(Item::as_str) != Some(plugin));
            removed = before - grants.len();
        })?;
        Ok(removed)
    }

    /// Changes the grants under the lock. Writes nothing if the change leaves the content unchanged.
    fn change(
        &self,
        action: &str,
        plugin: &str,
        rules: &[String],
        edit: impl FnOnce(&mut ArrayOfTables),
    ) -> Result<(), GrantsFileError> {
        let write_error = |error: io::Error| self.error(GrantsFileErrorReason::Write(error));
        create_directory_of(&self.path).map_err(write_error)?;
        let _lock = private_file::lock(&private_file::sibling(&self.path, ".lock")).map_err(write_error)?;
        let (text, _) = self.read_text()?;
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            self.error(GrantsFileErrorReason::NotGrantable(error.to_string()))
        })?;
        let tables = document
            .entry("grant")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .ok_or_else(|| self.error(GrantsFileErrorReason::InlineGrants))?;
        let before = tables.len();
        edit(tables);
        if tables.len() == before {
            return Ok(());
        }
        let changed = document.to_string();
        Grants::parse(changed.as_bytes())
            .map_err(|error| self.error(GrantsFileErrorReason::NotGrantable(error.to_string())))?;
        let line: Json = json!({"time": now(), "action": action, "plugin": plugin, "what": rules});
        // Logged first, so that a failure to log prevents the change.
        private_file::append_line(&private_file::sibling(&self.path, ".log"), &line.to_string())
            .and_then(|()| private_file::replace(&self.path, changed.as_bytes()))
            .map_err(write_error)
    }

    fn read_text(&self) -> Result<(String, Grants), GrantsFileError> {
        let bytes = match read_grants_file(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => EMPTY_FILE.as_bytes().to_vec(),
            Err(error) => return Err(self.error(GrantsFileErrorReason::Read(error))),
        };
        let grants = Grants::parse(&bytes).map_err(|error| self.error(GrantsFileErrorReason::Invalid(error)))?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), grants))
    }

    fn error(&self, reason: GrantsFileErrorReason) -> GrantsFileError {
        GrantsFileError {
            path: self.path.clone(),
            reason,
        }
    }
}

/// Reads a grants file, up to one byte over its maximum size. Refuses anything but a regular file: a pipe would block, and a
/// device may be endless.
pub(crate) fn read_grants_file(file: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(GRANTS_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn create_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or(Ok(()), fs::create_dir_all)
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::grants::{GrantRules, GrantScope, GrantedVersion};

    fn new_grant(rules: &str) -> NewGrant {
        let text = format!("version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n{rules}");
        let mut grants = Grants::parse(text.as_bytes()).unwrap().grants;
        let rules: GrantRules = grants.remove(0).rules;
        NewGrant {
            plugin: "p".to_owned(),
            version: GrantedVersion::Any,
            scope: GrantScope::Always,
            rules,
        }
    }

    #[test]
    fn rules_are_the_same_after_writing_and_reading() {
        let directory = tempfile::tempdir().unwrap();
        let host = directory.path().to_str().unwrap();
        let rules = format!(
            r#"
http = [
    {{ host = "a.example" }},
    {{ host = "*", any-host = true, scheme = "http", ports = [80, 8080], methods = ["GET", "POST"], path = "/v1" }},
    {{ host = "[::1]", port = 8443, addresses = ["10.0.0.0/8", "::1"] }},
]
files = [
    {{ host = '{host}', guest = "/in" }},
    {{ host = '{host}', guest = "/out", access = "read-write", quota = "10MB" }},
    {{ host = '{host}', guest = "/tmp", access = "read-write" }},
]
env = [{{ name = "LANG" }}, {{ name = "TZ", value = "UTC \"x\"" }}]
secrets = [
    {{ name = "a", host = "a.example", header = "X-Key", port = 8443, path = "/v1" }},
    {{ name = "b", from = "conversation", host = "a.example", bearer = true, expose = true, variable = "B" }},
    {{ name = "c", from = "environment", host = "a.example", query = "key" }},
]
config = {{ "a.b" = "c", "d e" = "f\ng" }}
keyvalue = {{ quota = "1KiB" }}
tools = ["calc/add"]
context = ["tenant"]
blackboard = "read-write"
clock = {{ frozen = 1 }}
random = "real"
"#
        );
        let grant = new_grant(&rules);
        let file = GrantsFile::new(directory.path().join("own/grants.toml"));
        file.grant(&grant).unwrap();
        let read = file.read().unwrap();
        assert_eq!(read.grants[0].rules, grant.rules);
        assert_eq!(read.grants[0].version, GrantedVersion::Any);
    }

    #[test]
    fn a_change_keeps_comments_and_other_grants() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("grants.toml");
        let other = "version = 1 # mine\n\n# why\n[[grant]]\nplugin = \"other\"\nany-version = true\n";
        fs::write(&path, other).unwrap();
        let file = GrantsFile::new(&path);
        file.grant(&new_grant("tools = [\"a\"]")).unwrap();
        assert_eq!(file.read().unwrap().grants.len(), 2);
        assert_eq!(file.revoke("p").unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
        assert_eq!(file.revoke("p").unwrap(), 0, "it is revoked already");
        let log = fs::read_to_string(directory.path().join("grants.toml.log")).unwrap();
        assert_eq!(log.lines().count(), 2, "{log}");
    }

    #[test]
    fn a_directory_that_does_not_exist_is_not_granted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("grants.toml");
        let host = directory.path().join("missing");
        let rules = format!("files = [{{ host = '{}', guest = \"/in\" }}]", host.display());
        let error = GrantsFile::new(&path).grant(&new_grant(&rules)).unwrap_err();
        assert!(
            matches!(error.reason, GrantsFileErrorReason::NotGrantable(_)),
            "{error}"
        );
        assert!(!path.exists(), "nothing is written");
    }
}
