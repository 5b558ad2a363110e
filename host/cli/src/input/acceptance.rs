//! The files in the configuration directory that store the accepted proposal of a project.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::configuration::configuration_file;
use toolwit::limits::GRANTS_BYTES_MAX;
use toolwit::registry::{InterceptorSettings, ProjectLimits, RemoteFile};
use toolwit::sandbox::{GrantsContent, GrantsFile};
use toolwit::tool::file::{LockedFile, read_text_file};
use toolwit::tool::text::sha256;
use toolwit::{Error, ErrorKind, Phase};

/// Maximum size of a record, in bytes. A record can contain a grants file, whose characters are escaped.
const RECORD_BYTES_MAX: u64 = 8 * GRANTS_BYTES_MAX;

/// Maximum length of a file name that encodes the path of a directory, in characters. The full file name has a suffix
/// of less than 50 characters, and file systems allow 255.
const NAME_CHARS_MAX: usize = 200;

/// The record of an accepted proposal. A proposal is accepted at the moment when the file with the record is replaced.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AcceptanceRecord {
    /// The digest of the proposal.
    pub(super) digest: String,
    /// The identity of the accepted directory. `None` in records of earlier versions of Toolwit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) directory: Option<String>,
    /// The accepted grants. Records of earlier versions of Toolwit do not have this field. For these records, the copy
    /// of the grants applies if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grants: Option<AcceptedGrants>,
    /// The accepted index of packages.
    pub(super) index: Option<RemoteFile>,
    /// The accepted interceptors.
    pub(super) interceptors: Vec<InterceptorSettings>,
    /// Whether WASI 0.3 is accepted.
    pub(super) wasi_p3: bool,
    /// The digest of the accepted MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) servers: Option<String>,
    /// The accepted limits. The project may raise its limits up to them.
    #[serde(rename = "accepted")]
    pub(super) limits: ProjectLimits,
}

/// The grants of an accepted proposal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AcceptedGrants {
    /// The proposal has no grants.
    None,
    /// The grants are in the copy. The user may have changed the copy since the acceptance.
    Copy,
    /// The text of the grants, which is not copied yet.
    Uncopied(String),
}

/// The files in the configuration directory that belong to a project.
pub(super) struct AcceptanceFiles {
    /// The copy of the accepted grants.
    grants_copy: GrantsFile,
    /// The path of the [`AcceptanceRecord`].
    record_path: PathBuf,
}

impl AcceptanceFiles {
    /// Returns the files of the project in a directory.
    ///
    /// # Errors
    /// If there is no configuration directory.
    pub(super) fn of_project(directory: &Path) -> Result<Self, Error> {
        let name = file_name(directory);
        Ok(Self {
            grants_copy: GrantsFile::new(configuration_file(&format!("projects/{name}.toml"))?),
            record_path: configuration_file(&format!("projects/{name}.accepted.toml"))?,
        })
    }

    /// Reads the record, and completes an acceptance that was interrupted. Returns `None` if nothing was accepted.
    ///
    /// # Errors
    /// If the record cannot be read or is invalid, or its grants cannot be copied.
    pub(super) fn read(&self) -> Result<Option<AcceptanceRecord>, Error> {
        let is_uncopied = |record: &AcceptanceRecord| matches!(record.grants, Some(AcceptedGrants::Uncopied(_)));
        match self.read_record()? {
            Some(record) if is_uncopied(&record) => {
                let record_file = self.lock()?;
                // Another process may have completed the acceptance meanwhile.
                let record = self.read_record()?;
                record.map(|record| self.complete(&record_file, record)).transpose()
            }
            record => Ok(record),
        }
    }

    /// Returns the path of the accepted grants. `None` if nothing was accepted, the proposal has no grants, or the copy
    /// does not exist.
    pub(super) fn accepted_grants(&self, record: Option<&AcceptanceRecord>) -> Option<PathBuf> {
        match record?.grants {
            Some(AcceptedGrants::None) => None,
            Some(_) | None => Some(self.grants_copy.path().to_owned()).filter(|grants| grants.exists()),
        }
    }

    /// Replaces the record and, if the proposal has grants, the copy of the grants. If the record cannot be written,
    /// nothing changes. If the copy cannot be written, the next [`read`](Self::read) completes the acceptance.
    ///
    /// # Errors
    /// If the record or the copy cannot be written.
    pub(super) fn accept(
        &self,
        mut record: AcceptanceRecord,
        grants: Option<&GrantsContent>,
    ) -> Result<AcceptanceRecord, Error> {
        // The lock is held while both files are written, so that record and copy match.
        let record_file = self.lock()?;
        record.grants = Some(grants.map_or(AcceptedGrants::None, |grants| {
            AcceptedGrants::Uncopied(grants.text().to_owned())
        }));
        write_record(&record_file, &record)?;
        self.complete(&record_file, record)
    }

    /// Completes an acceptance: copies the grants of the record, if they are not copied yet.
    fn complete(&self, record_file: &LockedFile, mut record: AcceptanceRecord) -> Result<AcceptanceRecord, Error> {
        if let Some(AcceptedGrants::Uncopied(text)) = &record.grants {
            let content = GrantsContent::parse(text.clone()).map_err(|error| self.record_error(&error))?;
            self.grants_copy.replace(&content)?;
            record.grants = Some(AcceptedGrants::Copy);
            write_record(record_file, &record)?;
        }
        Ok(record)
    }

    fn lock(&self) -> Result<LockedFile, Error> {
        LockedFile::acquire(&self.record_path).map_err(|error| acceptance_error(&error))
    }

    fn read_record(&self) -> Result<Option<AcceptanceRecord>, Error> {
        match read_text_file(&self.record_path, RECORD_BYTES_MAX) {
            Ok(text) => toml::from_str(&text)
                .map(Some)
                .map_err(|error| self.record_error(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.record_error(&error)),
        }
    }

    fn record_error(&self, reason: &dyn std::fmt::Display) -> Error {
        let message = format!(
            "the accepted proposal in `{}` cannot be used: {reason}",
            self.record_path.display()
        );
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("remove the file, and accept the project again with `toolwit trust`")
    }
}

fn write_record(record_file: &LockedFile, record: &AcceptanceRecord) -> Result<(), Error> {
    let text = toml::to_string(record).map_err(|error| acceptance_error(&error))?;
    record_file
        .replace(text.as_bytes())
        .map_err(|error| acceptance_error(&error))
}

fn acceptance_error(reason: &dyn std::fmt::Display) -> Error {
    let message = format!("the proposal cannot be accepted: {reason}");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}

impl AcceptanceRecord {
    /// Returns whether the record is for this directory, and not for another one that was at the same path.
    pub(super) fn is_for(&self, directory: &Path) -> bool {
        self.directory.is_none() || self.directory == directory_identity(directory)
    }
}

/// Returns the identity of a directory: its inode and its birth time, as far as the system reports them. The number of the device
/// is not part of it, because it can change when the machine starts.
pub(super) fn directory_identity(directory: &Path) -> Option<String> {
    let metadata = std::fs::metadata(directory).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    let created = metadata.created().ok();
    let created = created.and_then(|created| created.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{inode}:{}", created.map_or(0, |created| created.as_nanos())))
}

/// Encodes the path of a directory as a file name. Different directories have different names.
fn file_name(directory: &Path) -> String {
    let mut name = String::new();
    for byte in directory.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(*byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    if name.len() > NAME_CHARS_MAX {
        // The digest is not the name of another directory, because the names of absolute paths contain a `%`.
        return sha256(&name);
    }
    name
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn grants(greeting: &str) -> GrantsContent {
        let text = format!(
            "version = 1\n[[grant]]\nplugin = \"settings\"\nany-version = true\nconfig = {{ greeting = \"{greeting}\" }}\n"
        );
        GrantsContent::parse(text).unwrap()
    }

    fn record(digest: &str) -> AcceptanceRecord {
        AcceptanceRecord {
            digest: digest.to_owned(),
            ..AcceptanceRecord::default()
        }
    }

    fn files(directory: &Path) -> AcceptanceFiles {
        AcceptanceFiles {
            grants_copy: GrantsFile::new(directory.join("p.toml")),
            record_path: directory.join("p.accepted.toml"),
        }
    }

    /// Returns the digest of the accepted proposal, and the text of the grants that apply.
    fn accepted_proposal(files: &AcceptanceFiles) -> (Option<String>, Option<String>) {
        let record = files.read().unwrap();
        let grants = files.accepted_grants(record.as_ref());
        (
            record.map(|record| record.digest),
            grants.map(|grants| fs::read_to_string(grants).unwrap()),
        )
    }

    #[test]
    fn an_acceptance_that_fails_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        // The record cannot be replaced, because a directory has the name of its temporary file.
        let blocking_directory = directory
            .path()
            .join(format!(".p.accepted.toml.{}.new", std::process::id()));
        fs::create_dir(&blocking_directory).unwrap();
        assert!(files.accept(record("one"), Some(&grants("one"))).is_err());
        assert_eq!(accepted_proposal(&files), (None, None));
        fs::remove_dir(&blocking_directory).unwrap();
        files.accept(record("one"), Some(&grants("one"))).unwrap();
        let one = (Some("one".to_owned()), Some(grants("one").text().to_owned()));
        assert_eq!(accepted_proposal(&files), one);
        fs::create_dir(&blocking_directory).unwrap();
        assert!(files.accept(record("two"), Some(&grants("two"))).is_err());
        assert!(files.accept(record("three"), None).is_err());
        assert_eq!(accepted_proposal(&files), one);
    }

    #[test]
    fn an_interrupted_acceptance_is_completed_once() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        files.accept(record("one"), Some(&grants("one"))).unwrap();
        // As after a process that ended between writing the record and writing the copy.
        let mut interrupted = record("two");
        interrupted.grants = Some(AcceptedGrants::Uncopied(grants("two").text().to_owned()));
        write_record(&files.lock().unwrap(), &interrupted).unwrap();
        let two = (Some("two".to_owned()), Some(grants("two").text().to_owned()));
        assert_eq!(accepted_proposal(&files), two);
        // The next read does not overwrite a later change of the copy by the user.
        files.grants_copy.revoke("settings").unwrap();
        let (_, changed_grants) = accepted_proposal(&files);
        assert!(!changed_grants.unwrap().contains("greeting"));
    }

    #[test]
    fn accepting_a_proposal_without_grants_revokes_the_earlier_grants() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        files.accept(record("one"), Some(&grants("one"))).unwrap();
        files.accept(record("two"), None).unwrap();
        assert_eq!(accepted_proposal(&files), (Some("two".to_owned()), None));
    }

    #[test]
    fn grants_stay_accepted_if_an_earlier_version_wrote_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        files.grants_copy.replace(&grants("one")).unwrap();
        assert_eq!(
            accepted_proposal(&files),
            (None, None),
            "a copy without a record grants nothing"
        );
        fs::write(&files.record_path, "digest = \"one\"\n[accepted]\n").unwrap();
        let text = grants("one").text().to_owned();
        assert_eq!(accepted_proposal(&files), (Some("one".to_owned()), Some(text)));
    }

    #[test]
    fn different_directories_have_different_file_names() {
        assert_eq!(file_name(Path::new("/srv/a-b")), "%2fsrv%2fa-b");
        assert_ne!(file_name(Path::new("/srv/a/b")), file_name(Path::new("/srv/a%2fb")));
    }

    #[test]
    fn file_names_of_long_paths_are_short_and_different() {
        let root = format!("/srv/{}", "ж".repeat(100));
        let names = [&*root, &format!("{root}/a"), &format!("{root}/b")].map(|path| file_name(Path::new(path)));
        assert!(names.iter().all(|name| name.len() <= NAME_CHARS_MAX), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_ne!(names[1], names[2]);
    }
}
