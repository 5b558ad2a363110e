//! The operator's grants, as they are now.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::directory::OpenDirectory;
use super::directory_quota::DirectoryQuota;
use super::ledger::Ledger;
use crate::grants::authority::ConversationNumber;
use crate::grants::{
    AccessMode, DeclaredCapabilities, EffectiveRights, GRANTS_BYTES_MAX, Grant, GrantScope, Grants, GrantsError,
    NoGrantReason,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorityRequest<'a> {
    pub(crate) plugin: &'a Arc<str>,
    /// What it has where nothing is granted to anybody.
    pub(crate) nothing: &'a Arc<OpenedRights>,
    pub(crate) digest: &'a str,
    pub(crate) declared: &'a DeclaredCapabilities,
    pub(crate) conversation: ConversationNumber,
    /// The rights of the plugin that makes the call, if a plugin makes it.
    pub(crate) caller: Option<&'a EffectiveRights>,
}

/// What a plugin has: its effective rights, with the directories opened.
#[derive(Debug, Default)]
pub(crate) struct OpenedRights {
    pub(crate) effective: EffectiveRights,
    pub(crate) directories: Vec<Arc<OpenDirectory>>,
}

impl OpenedRights {
    /// Narrows it to what the plugin that makes the call may do too.
    pub(crate) fn within(&self, caller: &EffectiveRights) -> Arc<Self> {
        let effective = self.effective.within(caller);
        let remains =
            |directory: &&Arc<OpenDirectory>| effective.files.iter().any(|rule| rule.guest == directory.guest);
        let directories = self.directories.iter().filter(remains).cloned().collect();
        Arc::new(Self { effective, directories })
    }
}

/// Reads the file of grants, and reads it again when it has changed.
///
/// A file that cannot be read, or is wrong, grants nothing: what was granted before ends with the next call.
pub(crate) struct CurrentGrants {
    file: Option<PathBuf>,
    /// Files of the host that no plugin may be given.
    protected: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stamp: Option<Stamp>,
    loaded: Option<Loaded>,
    /// Why the file holds nothing now.
    broken: Option<Error>,
    ledger: Option<Ledger>,
    quotas: HashMap<PathBuf, Arc<DirectoryQuota>>,
}

/// A file of grants that was read as a whole.
struct Loaded {
    grants: Grants,
    /// By grant and rule.
    directories: Vec<Vec<Arc<OpenDirectory>>>,
    /// What each plugin has, for as long as the file stays as it is.
    known: HashMap<(String, String), Arc<OpenedRights>>,
}

/// Tells whether a file has changed without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File {
        modified: Option<SystemTime>,
        bytes: u64,
        /// Inode and time of the last change of it, where there are such.
        identity: (u64, i64, i64),
    },
    Unreadable(io::ErrorKind),
}

impl CurrentGrants {
    /// Reads the grants. Without a file nothing is granted to anybody.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the line and column of what is wrong.
    pub(crate) fn open(file: Option<PathBuf>, mut protected: Vec<PathBuf>) -> Result<Self, Error> {
        protected.extend(file.iter().cloned());
        let protected = protected
            .iter()
            // A file that is yet to be made is protected by where it will be.
            .map(|path| {
                fs::canonicalize(path)
                    .or_else(|_| std::path::absolute(path))
                    .unwrap_or_else(|_| path.clone())
            })
            .collect();
        let policy = Self {
            file,
            protected,
            state: Mutex::default(),
        };
        if let Some(file) = &policy.file {
            let mut state = policy.lock();
            state.ledger = Some(Ledger::open(ledger_file(file)).map_err(|error| unreadable(file, &error))?);
            policy.refresh(&mut state, file);
            if let Some(error) = state.broken.take() {
                return Err(error);
            }
        }
        Ok(policy)
    }

    /// Lists the plugins that something is granted to.
    pub(crate) fn plugins(&self) -> Vec<String> {
        let state = self.lock();
        let grants = state.loaded.iter().flat_map(|loaded| &loaded.grants.grants);
        grants.map(|grant| grant.plugin.clone()).collect()
    }

    /// Tells by the file's metadata whether it has changed since it was read. Cheap enough for every call.
    pub(crate) fn is_stale(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|file| self.lock().stamp.as_ref() != Some(&Stamp::of(file)))
    }

    /// Reads the file again, and opens the directories that it grants. Blocks on the disk.
    pub(crate) fn reread(&self) {
        if let Some(file) = &self.file {
            self.refresh(&mut self.lock(), file);
        }
    }

    /// Finds what a plugin has. Uses up grants for one call, so that it is asked once for each.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] for a plugin that had a grant while the file is unreadable or wrong.
    pub(crate) fn granted(&self, applicant: AuthorityRequest<'_>) -> Result<Arc<OpenedRights>, Error> {
        let mut state = self.lock();
        let State {
            loaded, broken, ledger, ..
        } = &mut *state;
        if let Some(error) = broken {
            let had_some = |loaded: &Loaded| {
                loaded
                    .grants
                    .grants
                    .iter()
                    .any(|grant| grant.plugin == **applicant.plugin)
            };
            return if loaded.as_ref().is_some_and(had_some) {
                Err(Error::new(
                    ErrorKind::Denied,
                    Phase::Execute,
                    format!("nothing is granted: {}", error.message),
                )
                .with_suggestion("mend the file of grants"))
            } else {
                Ok(nothing(applicant.declared, NoGrantReason::Unreadable))
            };
        }
        match (loaded, ledger) {
            (Some(loaded), Some(ledger)) => Ok(loaded.granted(applicant, ledger)),
            _ => Ok(applicant.nothing.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file anew. What was loaded before stays known, to tell who had something.
    fn refresh(&self, state: &mut State, file: &Path) {
        // The stamp is older than what is read: a change in between is seen at the next call.
        state.stamp = Some(Stamp::of(file));
        match self.load(file, &mut state.quotas) {
            Ok(loaded) => {
                tracing::info!(file = %file.display(), grants = loaded.grants.grants.len(), "grants were read");
                state.loaded = Some(loaded);
                state.broken = None;
            }
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "the grants hold no longer");
                state.broken = Some(error);
            }
        }
    }

    fn load(&self, file: &Path, quotas: &mut HashMap<PathBuf, Arc<DirectoryQuota>>) -> Result<Loaded, Error> {
        let bytes = read_grants_file(file).map_err(|error| unreadable(file, &error))?;
        let grants = Grants::parse(&bytes).map_err(|error| wrong(file, &error))?;
        let mut directories = Vec::with_capacity(grants.grants.len());
        for grant in &grants.grants {
            let opened: Result<Vec<_>, Error> = grant
                .rules
                .files
                .iter()
                .map(|rule| {
                    let quota = |path: &Path, bytes_max: u64| {
                        let known = quotas.get(path).filter(|quota| quota.bytes_max() == bytes_max).cloned();
                        let quota = known.unwrap_or_else(|| Arc::new(DirectoryQuota::new(path.to_owned(), bytes_max)));
                        if rule.access == AccessMode::ReadWrite {
                            quotas.insert(path.to_owned(), quota.clone());
                        }
                        quota
                    };
                    OpenDirectory::open(rule, &self.protected, quota)
                        .map(Arc::new)
                        .map_err(|error| {
                            let message = format!("the directory `{}` cannot be granted: {error}", rule.host.display());
                            wrong(
                                file,
                                &GrantsError::Rule {
                                    position: grant.position,
                                    message,
                                },
                            )
                        })
                })
                .collect();
            directories.push(opened?);
        }
        Ok(Loaded {
            grants,
            directories,
            known: HashMap::new(),
        })
    }
}

impl Loaded {
    fn granted(&mut self, applicant: AuthorityRequest<'_>, ledger: &mut Ledger) -> Arc<OpenedRights> {
        let key = (applicant.plugin.to_string(), applicant.digest.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let fits = |grant: &Grant| grant.is_for(applicant.plugin, applicant.digest);
        let fitting: Vec<_> = (0..self.grants.grants.len())
            .filter(|index| fits(&self.grants.grants[*index]))
            .collect();
        let holding: Vec<_> = fitting
            .iter()
            .copied()
            .filter(|index| ledger.admit(&self.grants.grants[*index], applicant.conversation))
            .collect();
        let granted = if holding.is_empty() && !fitting.is_empty() {
            nothing(applicant.declared, NoGrantReason::UsedUp)
        } else if holding.is_empty() {
            let effective = EffectiveRights::new(applicant.declared, &self.grants, applicant.plugin, applicant.digest);
            Arc::new(OpenedRights {
                effective,
                directories: Vec::new(),
            })
        } else {
            let effective = EffectiveRights::of_grants(
                applicant.declared,
                holding.iter().map(|index| &self.grants.grants[*index]),
            );
            let open = holding.iter().flat_map(|index| &self.directories[*index]);
            let is_wanted = |directory: &&Arc<OpenDirectory>| {
                effective
                    .files
                    .iter()
                    .any(|rule| rule.guest == directory.guest && rule.access == directory.access)
            };
            let mut directories: Vec<Arc<OpenDirectory>> = Vec::new();
            for directory in open.filter(is_wanted) {
                if !directories.iter().any(|known| known.guest == directory.guest) {
                    directories.push(directory.clone());
                }
            }
            Arc::new(OpenedRights { effective, directories })
        };
        if fitting
            .iter()
            .all(|index| self.grants.grants[*index].scope == GrantScope::Always)
        {
            self.known.insert(key, granted.clone());
        }
        granted
    }
}

pub(crate) fn nothing(declared: &DeclaredCapabilities, why: NoGrantReason) -> Arc<OpenedRights> {
    Arc::new(OpenedRights {
        effective: EffectiveRights::nothing(declared, why),
        directories: Vec::new(),
    })
}

/// Where uses are noted: beside the grants.
fn ledger_file(grants: &Path) -> PathBuf {
    let mut name = grants.file_name().unwrap_or_default().to_owned();
    name.push(".used");
    grants.with_file_name(name)
}

impl Stamp {
    fn of(file: &Path) -> Self {
        match fs::metadata(file) {
            Ok(metadata) => Self::File {
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
                identity: identity(&metadata),
            },
            Err(error) => Self::Unreadable(error.kind()),
        }
    }
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}

/// Reads a regular file up to its bound. A pipe would block, and a device has no end.
pub fn read_grants_file(file: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(GRANTS_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants {} could not be read: {error}", file.display()),
    )
    .with_suggestion("name a file of grants, or none to grant nothing")
}

fn wrong(file: &Path, error: &GrantsError) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants {} are wrong: {error}", file.display()),
    )
    .with_suggestion("nothing is granted until the file is mended")
}
