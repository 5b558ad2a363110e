//! The grants of the project in the current directory.
//!
//! A `toolwit.toml` can name a grants file in its table `[grants]`. Anyone who can change the project, such as the author of a
//! cloned repository, can change both, so they grant nothing by themselves. `toolwit trust --accept DIGEST` copies the
//! grants to the user's configuration directory. Later changes of the project's file have no effect on the copy.

use std::fs;
use std::path::{Path, PathBuf};

use super::configuration::configuration_file;
use super::project::project;
use toolwit::sandbox::{GrantsContent, GrantsFile};
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
    /// The project's grants file, if its configuration names one.
    proposed: Option<GrantsFile>,
    /// The grants that apply, if they were accepted.
    accepted: GrantsFile,
    /// The file with the digest of the project's grants when they were accepted.
    digest_file: PathBuf,
}

impl ProjectGrants {
    /// Finds the grants of the project in the current directory.
    ///
    /// # Errors
    /// If the configuration of the project is invalid, or there is no configuration directory for accepted grants.
    pub(crate) fn find() -> Result<Self, Error> {
        let directory = fs::canonicalize(".").map_err(|error| {
            let message = format!("the current directory cannot be used: {error}");
            Error::new(ErrorKind::Io, Phase::Registry, message)
        })?;
        let name = file_name(&directory);
        Ok(Self {
            proposed: project()?.grants.file.map(|file| GrantsFile::new(directory.join(file))),
            accepted: GrantsFile::new(configuration_file(&format!("projects/{name}.toml"))?),
            digest_file: configuration_file(&format!("projects/{name}.digest"))?,
        })
    }

    /// Returns the accepted grants of the project in the current directory. Warns about grants that do not apply.
    ///
    /// Accepted grants apply even if the project no longer proposes any: otherwise a plugin that can write to the project could
    /// exchange them for the user's other grants.
    ///
    /// # Errors
    /// Those of [`ProjectGrants::find`].
    pub(crate) fn find_accepted() -> Result<Option<PathBuf>, Error> {
        let project = Self::find()?;
        match (project.trust(), &project.proposed) {
            (Trust::NotAccepted, Some(_)) => {
                tracing::warn!(
                    "the project has grants that do not apply; `toolwit trust` shows them, and how to accept them"
                );
            }
            (Trust::Changed, _) => {
                tracing::warn!(
                    "the project's grants have changed since they were accepted; `toolwit trust` shows them"
                );
            }
            (Trust::Accepted | Trust::NotAccepted, _) => {}
        }
        let accepted = project.accepted.path();
        Ok(accepted.exists().then(|| accepted.to_owned()))
    }

    /// Returns the project's grants file, if its configuration names one.
    pub(crate) fn proposed(&self) -> Option<&GrantsFile> {
        self.proposed.as_ref()
    }

    pub(crate) fn trust(&self) -> Trust {
        if !self.accepted.path().exists() {
            return Trust::NotAccepted;
        }
        let proposed = self.proposed.as_ref().and_then(|file| file.content().ok());
        let is_same = proposed.is_some_and(|content| {
            fs::read_to_string(&self.digest_file).is_ok_and(|digest| digest == content.digest())
        });
        if is_same { Trust::Accepted } else { Trust::Changed }
    }

    /// Replaces the user's copy by proposed grants.
    ///
    /// # Errors
    /// If the copy cannot be written.
    pub(crate) fn accept(&self, content: &GrantsContent) -> Result<(), Error> {
        let record = || {
            if let Some(directory) = self.digest_file.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(&self.digest_file, content.digest())
        };
        // Recorded first: if the copy fails, the grants that were accepted earlier stay in force.
        record().map_err(|error| {
            let message = format!("the grants cannot be accepted: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        })?;
        Ok(self.accepted.replace(content)?)
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
