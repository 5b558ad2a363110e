//! The current grants: the content of the grants file, which is read again after every change.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file_stamp::FileStamp;
use super::ledger::{GrantUse, Ledger};
use super::rights::{AuthorityRequest, OpenedRights};
use crate::grants::directories::DirectoryQuota;
use crate::grants::directories::OpenDirectory;
use crate::grants::file::private_file::sibling;
use crate::grants::file::read_grants_file;
use crate::grants::{
    AccessMode, DirectoryRule, EffectiveRights, Grant, GrantScope, Grants, GrantsError, NoGrantReason,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// The current grants.
///
/// A file that cannot be read or is invalid grants nothing: from the next call on, earlier grants no longer apply.
pub(crate) struct CurrentGrants {
    file: Option<PathBuf>,
    /// Files of the host to which no plugin may have access.
    protected: Vec<PathBuf>,
    state: Mutex<GrantsState>,
}

#[derive(Default)]
struct GrantsState {
    stamp: Option<FileStamp>,
    loaded: Option<LoadedGrants>,
    /// The reason why the file currently grants nothing.
    broken: Option<Error>,
    ledger: Option<Ledger>,
    quotas: HashMap<PathBuf, Arc<DirectoryQuota>>,
}

/// A valid grants file, with its directories opened.
struct LoadedGrants {
    grants: Grants,
    /// The directories of each grant, in the order of its rules.
    directories: Vec<Vec<Arc<OpenDirectory>>>,
    /// The cached rights of each plugin and digest, discarded when the file changes.
    rights: HashMap<(String, String), Arc<OpenedRights>>,
}

impl CurrentGrants {
    /// Reads the grants file. Without a file nothing is granted.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read, is invalid, or grants a directory that cannot be opened.
    pub(crate) fn open(file: Option<PathBuf>, mut protected: Vec<PathBuf>) -> Result<Self, Error> {
        protected.extend(file.iter().cloned());
        let protected = protected
            .iter()
            .map(|path| {
                std::fs::canonicalize(path)
                    .or_else(|_| std::path::absolute(path))
                    .unwrap_or_else(|_| path.clone())
            })
            .collect();
        let current = Self {
            file,
            protected,
            state: Mutex::default(),
        };
        if let Some(file) = &current.file {
            let mut state = current.lock();
            let ledger = Ledger::open(sibling(file, ".used")).map_err(|error| unreadable(file, &error))?;
            state.ledger = Some(ledger);
            current.refresh(&mut state, file);
            if let Some(error) = state.broken.take() {
                return Err(error);
            }
        }
        Ok(current)
    }

    /// Lists the plugins that the grants refer to.
    pub(crate) fn plugins(&self) -> Vec<String> {
        let state = self.lock();
        let grants = state.loaded.iter().flat_map(|loaded| &loaded.grants.grants);
        grants.map(|grant| grant.plugin.clone()).collect()
    }

    /// Returns whether the file has changed since it was read. Compares metadata only, which is cheap enough for every call.
    pub(crate) fn is_stale(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|file| self.lock().stamp.as_ref() != Some(&FileStamp::of(file)))
    }

    /// Reads the file again and opens the directories that it grants. Blocks on the disk.
    pub(crate) fn reread(&self) {
        if let Some(file) = &self.file {
            self.refresh(&mut self.lock(), file);
        }
    }

    /// Computes the rights of a plugin. [`GrantUse::Call`] uses up a grant for one call, so pass it exactly once per call.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] for a plugin that had a grant, while the file is unreadable or invalid.
    pub(crate) fn rights(
        &self,
        request: AuthorityRequest<'_>,
        grant_use: GrantUse,
    ) -> Result<Arc<OpenedRights>, Error> {
        let mut state = self.lock();
        let GrantsState {
            loaded, broken, ledger, ..
        } = &mut *state;
        if let Some(error) = broken {
            let names_plugin = |loaded: &LoadedGrants| {
                let grants = &loaded.grants.grants;
                grants.iter().any(|grant| grant.plugin == **request.plugin)
            };
            return if loaded.as_ref().is_some_and(names_plugin) {
                let message = format!("nothing is granted: {}", error.message);
                Err(Error::new(ErrorKind::Denied, Phase::Execute, message).with_suggestion("fix the grants file"))
            } else {
                Ok(OpenedRights::none(request.declared, NoGrantReason::Unreadable))
            };
        }
        match (loaded, ledger) {
            (Some(loaded), Some(ledger)) => Ok(loaded.rights(request, ledger, grant_use)),
            _ => Ok(request.no_rights.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, GrantsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again. If it has become invalid, the last valid grants stay in memory, to identify the plugins that had a
    /// grant.
    fn refresh(&self, state: &mut GrantsState, file: &Path) {
        // The stamp is older than the content: a change between the two is noticed at the next call.
        state.stamp = Some(FileStamp::of(file));
        match self.load(file, &mut state.quotas) {
            Ok(loaded) => {
                tracing::info!(file = %file.display(), grants = loaded.grants.grants.len(), "the grants file was read");
                state.loaded = Some(loaded);
                state.broken = None;
            }
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "the grants no longer apply");
                state.broken = Some(error);
            }
        }
    }

    fn load(&self, file: &Path, quotas: &mut HashMap<PathBuf, Arc<DirectoryQuota>>) -> Result<LoadedGrants, Error> {
        let bytes = read_grants_file(file).map_err(|error| unreadable(file, &error))?;
        let grants = Grants::parse(&bytes).map_err(|error| invalid(file, &error))?;
        let open_all = |grant: &Grant| -> Result<Vec<_>, Error> {
            let rules = grant.rules.files.iter();
            let opened = rules.map(|rule| {
                self.open_directory(rule, quotas).map_err(|error| {
                    let message = format!("the directory `{}` cannot be granted: {error}", rule.host.display());
                    let position = grant.position;
                    invalid(file, &GrantsError::Rule { position, message })
                })
            });
            opened.collect()
        };
        let directories: Result<_, Error> = grants.grants.iter().map(open_all).collect();
        Ok(LoadedGrants {
            directories: directories?,
            grants,
            rights: HashMap::new(),
        })
    }

    /// Opens a directory. Writable rules for one directory with the same quota share its count.
    fn open_directory(
        &self,
        rule: &DirectoryRule,
        quotas: &mut HashMap<PathBuf, Arc<DirectoryQuota>>,
    ) -> io::Result<Arc<OpenDirectory>> {
        let quota = |path: &Path, bytes_max: u64| {
            let earlier = quotas.get(path).filter(|quota| quota.bytes_max() == bytes_max);
            let quota = earlier
                .cloned()
                .unwrap_or_else(|| Arc::new(DirectoryQuota::new(path.to_owned(), bytes_max)));
            if rule.access == AccessMode::ReadWrite {
                quotas.insert(path.to_owned(), quota.clone());
            }
            quota
        };
        OpenDirectory::open(rule, &self.protected, quota).map(Arc::new)
    }
}

impl LoadedGrants {
    fn rights(&mut self, request: AuthorityRequest<'_>, ledger: &mut Ledger, grant_use: GrantUse) -> Arc<OpenedRights> {
        let key = (request.plugin.to_string(), request.digest.to_owned());
        if let Some(rights) = self.rights.get(&key) {
            return rights.clone();
        }
        let grants = &self.grants.grants;
        let is_named = |index: &usize| grants[*index].is_for(request.plugin, request.digest);
        let applicable: Vec<usize> = (0..grants.len()).filter(is_named).collect();
        let unused: Vec<usize> = applicable
            .iter()
            .copied()
            .filter(|index| ledger.admit(&grants[*index], request.conversation, grant_use))
            .collect();
        let rights = if applicable.is_empty() {
            // Determines the reason only: another digest, or no grant at all.
            let effective = EffectiveRights::new(request.declared, &self.grants, request.plugin, request.digest);
            OpenedRights::new(effective, std::iter::empty())
        } else if unused.is_empty() {
            OpenedRights::none(request.declared, NoGrantReason::UsedUp)
        } else {
            let effective = EffectiveRights::of_grants(request.declared, unused.iter().map(|index| &grants[*index]));
            OpenedRights::new(effective, unused.iter().flat_map(|index| &self.directories[*index]))
        };
        if applicable
            .iter()
            .all(|index| grants[*index].scope == GrantScope::Always)
        {
            self.rights.insert(key, rights.clone());
        }
        rights
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants file {} could not be read: {error}", file.display()),
    )
    .with_suggestion("name an existing grants file, or none to grant nothing")
}

fn invalid(file: &Path, error: &GrantsError) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants file {} is invalid: {error}", file.display()),
    )
    .with_suggestion("fix the file; until then nothing is granted")
}
