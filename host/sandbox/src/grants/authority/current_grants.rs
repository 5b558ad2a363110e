//! The current grants: the content of the grants file, which is read again after every change.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::directory_opener::DirectoryOpener;
use super::file_stamp::FileStamp;
use super::ledger::{GrantUse, Ledger};
use super::loaded_grants::LoadedGrants;
use super::rights::{AuthorityRequest, OpenedRights};
use crate::grants::file::read_grants_file;
use crate::grants::{Grant, GrantRules, Grants, GrantsError, NoGrantReason};
use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase};

/// The current grants: those of the application, and those of the file.
///
/// While the file cannot be read or is invalid, no grant applies, including those of the application. A rule that cannot be
/// enforced allows nothing; all others apply.
pub(crate) struct CurrentGrants {
    file: Option<PathBuf>,
    /// The grants of the application.
    fixed: Vec<Grant>,
    state: Mutex<GrantsState>,
}

struct GrantsState {
    stamp: Option<FileStamp>,
    loaded: Option<LoadedGrants>,
    /// The reason why the file currently grants nothing.
    broken: Option<Error>,
    ledger: Ledger,
    /// The plugins and digests for which lost grants have been announced.
    announced: HashSet<(String, String)>,
    directories: DirectoryOpener,
}

impl CurrentGrants {
    /// Reads the grants file. Without a file, only the grants of the application apply. No plugin gets access to `protected`, and
    /// no plugin can write to `plugins`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read or is invalid.
    pub(crate) fn open(
        file: Option<PathBuf>,
        fixed: Vec<Grant>,
        mut protected: Vec<PathBuf>,
        plugins: &[PathBuf],
    ) -> Result<Self, Error> {
        protected.extend(file.iter().cloned());
        let state = GrantsState {
            stamp: None,
            loaded: None,
            broken: None,
            ledger: file.as_deref().map(Ledger::of).unwrap_or_default(),
            announced: HashSet::new(),
            directories: DirectoryOpener::new(file.clone(), &protected, plugins),
        };
        let current = Self {
            file,
            fixed,
            state: Mutex::new(state),
        };
        let mut state = current.lock();
        current.refresh(&mut state);
        if let Some(error) = state.broken.take() {
            return Err(error);
        }
        drop(state);
        Ok(current)
    }

    /// Lists the plugins that the grants refer to.
    pub(crate) fn plugins(&self) -> Vec<String> {
        let state = self.lock();
        let grants = state.loaded.iter().flat_map(LoadedGrants::grants);
        grants.map(|grant| grant.plugin.clone()).collect()
    }

    /// Returns whether the file or a granted directory has changed since it was read. Compares metadata only, which is cheap enough
    /// for every call.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.lock();
        let file_changed = self
            .file
            .as_ref()
            .is_some_and(|file| state.stamp.as_ref() != Some(&FileStamp::of(file)));
        file_changed || state.loaded.as_ref().is_some_and(LoadedGrants::is_outdated)
    }

    /// Reads the file again and opens the directories that it grants. Blocks on the disk.
    pub(crate) fn reread(&self) {
        self.refresh(&mut self.lock());
    }

    /// Checks that the host can enforce rules.
    ///
    /// # Errors
    /// For the first directory that cannot be granted. The message contains its path.
    pub(crate) fn check(&self, rules: &GrantRules) -> Result<(), Error> {
        let state = self.lock();
        let granted = state.loaded.as_ref().map(LoadedGrants::grants);
        state.directories.check(rules, granted.unwrap_or_default())
    }

    /// Computes the rights of a plugin. [`GrantUse::Call`] uses up a grant for one call, so pass it exactly once per call.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] for a plugin that had a grant, while the file is unreadable or invalid.
    pub(crate) fn rights(&self, request: AuthorityRequest<'_>, grant_use: GrantUse) -> Result<GrantedRights, Error> {
        let mut state = self.lock();
        let GrantsState {
            loaded,
            broken,
            ledger,
            announced,
            ..
        } = &mut *state;
        if let Some(error) = broken {
            let names_plugin =
                |loaded: &LoadedGrants| loaded.grants().iter().any(|grant| grant.plugin == **request.plugin);
            return if loaded.as_ref().is_some_and(names_plugin) {
                // A model reads the message, so it does not contain the path of the file.
                let message = "nothing is granted to the plugin, because the grants file cannot be used";
                let denied = DeniedAccess {
                    plugin: request.plugin.to_string(),
                    access: "be called".to_owned(),
                    reason: error.message.clone(),
                    suggestion: "fix the grants file".to_owned(),
                    missing_grant: None,
                };
                Err(Error::new(ErrorKind::Denied, Phase::Execute, message)
                    .with_suggestion("the operator must fix the grants file")
                    .with_denied(vec![denied])
                    .with_source(error.clone()))
            } else {
                Ok(OpenedRights::none(request.declared, NoGrantReason::Unreadable).into())
            };
        }
        let Some(loaded) = loaded else {
            return Ok(request.no_rights.clone().into());
        };
        let rights = loaded.rights(request, ledger, grant_use);
        let lost = match grant_use {
            GrantUse::Call => loaded.newly_lost(request, &rights, announced),
            GrantUse::Preview => Vec::new(),
        };
        Ok(GrantedRights { rights, lost })
    }

    fn lock(&self) -> MutexGuard<'_, GrantsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again. If it has become invalid, the last valid grants stay in memory, to identify the plugins that had a
    /// grant.
    fn refresh(&self, state: &mut GrantsState) {
        let Some(file) = &self.file else {
            if !self.fixed.is_empty() {
                state.loaded = Some(LoadedGrants::open(self.fixed.clone(), &mut state.directories));
            }
            return;
        };
        // The stamp is older than the content: a change between the two is noticed at the next call.
        state.stamp = Some(FileStamp::of(file));
        match read(file) {
            Ok(of_file) => {
                tracing::info!(file = %file.display(), grants = of_file.len(), "the grants file was read");
                let grants = self.fixed.iter().cloned().chain(of_file).collect();
                state.loaded = Some(LoadedGrants::open(grants, &mut state.directories));
                state.broken = None;
            }
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "the grants no longer apply");
                state.broken = Some(error);
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<Grant>, Error> {
    let bytes = read_grants_file(file).map_err(|error| unreadable(file, &error))?;
    let grants = Grants::parse(&bytes).map_err(|error| invalid(file, &error))?;
    Ok(grants.grants)
}

/// The rights of a plugin, and what it has lost.
pub(crate) struct GrantedRights {
    pub(crate) rights: Arc<OpenedRights>,
    /// The rules that the plugin lost because its component changed, if this call is the first one since then.
    pub(crate) lost: Vec<String>,
}

impl From<Arc<OpenedRights>> for GrantedRights {
    fn from(rights: Arc<OpenedRights>) -> Self {
        Self {
            rights,
            lost: Vec::new(),
        }
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants file {} could not be read: {error}", file.display()),
    )
    .with_suggestion("name an existing grants file, or omit it to grant nothing")
}

fn invalid(file: &Path, error: &GrantsError) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants file {} is invalid: {error}", file.display()),
    )
    .with_suggestion("fix the file; until then nothing is granted")
}
