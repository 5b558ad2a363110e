//! The grants of the project in the current directory.
//!
//! A `toolwit.toml` can name a grants file in its table `[grants]`. Anyone who can change the project, such as the author of a
//! cloned repository, can change both, so they grant nothing by themselves. `toolwit trust --accept` copies the grants to the
//! user's configuration directory. Later changes of the project's file have no effect on the copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::configuration::configuration_file;
use super::project::project;
use toolwit::grants::Grants;
use toolwit::sandbox::GrantsFile;
use toolwit::{Error, ErrorKind, Phase};

/// Whether the user has accepted the grants of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They do not apply.
    NotAccepted,
    /// They apply.
    Accepted,
    /// The accepted ones apply. The project's file has changed since.
    Changed,
}

/// The grants that a project proposes, and the user's copy of those that were accepted.
#[derive(Clone, Debug)]
pub(crate) struct ProjectGrants {
    /// The project's grants file.
    pub(crate) proposed: GrantsFile,
    /// The grants that apply, if they were accepted.
    pub(crate) accepted: GrantsFile,
    /// The content of the project's file when it was accepted.
    original: PathBuf,
}

impl ProjectGrants {
    /// Finds the grants of the project in the current directory.
    ///
    /// # Errors
    /// If the configuration file cannot be read, or there is no configuration directory for accepted grants.
    pub(crate) fn find() -> Result<Option<Self>, Error> {
        let Some(file) = project()?.grants.file else {
            return Ok(None);
        };
        let project = fs::canonicalize(".").map_err(|error| {
            let message = format!("the current directory cannot be used: {error}");
            Error::new(ErrorKind::Io, Phase::Registry, message)
        })?;
        let name = file_name(&project);
        Ok(Some(Self {
            proposed: GrantsFile::new(project.join(file)),
            accepted: GrantsFile::new(configuration_file(&format!("projects/{name}.toml"))?),
            original: configuration_file(&format!("projects/{name}.original"))?,
        }))
    }

    /// Finds the accepted grants of the project in the current directory. Warns about grants that do not apply.
    pub(crate) fn find_accepted() -> Option<PathBuf> {
        let project = Self::find().unwrap_or_else(|error| {
            tracing::warn!(%error, "the project's configuration is ignored");
            None
        })?;
        match project.trust() {
            Trust::NotAccepted => {
                tracing::warn!("the project has grants that do not apply; `toolwit trust` shows and accepts them");
                return None;
            }
            Trust::Changed => {
                tracing::warn!(
                    "the project's grants have changed since they were accepted; `toolwit trust` shows them"
                );
            }
            Trust::Accepted => {}
        }
        Some(project.accepted.path().to_owned())
    }

    pub(crate) fn trust(&self) -> Trust {
        match fs::read(&self.original) {
            Ok(original) if self.accepted.path().exists() => {
                if fs::read(self.proposed.path()).is_ok_and(|proposed| proposed == original) {
                    Trust::Accepted
                } else {
                    Trust::Changed
                }
            }
            _ => Trust::NotAccepted,
        }
    }

    /// Replaces the user's copy by the proposed grants.
    ///
    /// # Errors
    /// If the proposed file is invalid or the copy cannot be written.
    pub(crate) fn accept(&self) -> Result<(), Error> {
        let failed = |error: String| {
            let message = format!("the grants cannot be accepted: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        // Read once: what is checked is what is copied.
        let bytes = fs::read(self.proposed.path()).map_err(|error| failed(error.to_string()))?;
        Grants::parse(&bytes).map_err(|error| failed(error.to_string()))?;
        let write = || -> io::Result<()> {
            if let Some(directory) = self.original.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(self.accepted.path(), &bytes)?;
            fs::write(&self.original, &bytes)
        };
        write().map_err(|error| failed(error.to_string()))
    }
}

/// Returns a file name for a directory. Different directories have different names.
fn file_name(directory: &Path) -> String {
    let mut name = String::new();
    for byte in directory.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(*byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_directories_have_different_file_names() {
        assert_eq!(file_name(Path::new("/srv/a-b")), "%2fsrv%2fa-b");
        assert_ne!(file_name(Path::new("/srv/a/b")), file_name(Path::new("/srv/a%2fb")));
    }
}
