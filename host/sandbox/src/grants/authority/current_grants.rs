//! The current grants: the content of the grants file, which is read again after every change.

use std::collections::{HashMap, HashSet};
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
    AccessMode, Capability, DirectoryRule, EffectiveRights, Grant, GrantRules, GrantScope, GrantedVersion, Grants,
    GrantsError, NoGrantReason, UnenforceableRule, stale_grants,
};
use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase};

/// The current grants: those of the application, and those of the file.
///
/// While the file cannot be read or is invalid, no grant applies, including those of the application. A rule that cannot be
/// enforced affects only its plugin.
pub(crate) struct CurrentGrants {
    file: Option<PathBuf>,
    /// The grants of the application.
    fixed: Vec<Grant>,
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
    ledger: Ledger,
    /// The plugins and digests for which lost grants have been announced.
    announced: HashSet<(String, String)>,
    quotas: HashMap<PathBuf, Arc<DirectoryQuota>>,
}

/// The directories of a grant, in the order of its rules, or the first rule that cannot be enforced.
type OpenedGrant = Result<Vec<Arc<OpenDirectory>>, UnenforceableRule>;

/// Valid grants, with their directories opened.
struct LoadedGrants {
    grants: Grants,
    opened: Vec<OpenedGrant>,
    /// The cached rights of each plugin and digest, discarded when the file changes.
    rights: HashMap<(String, String), Arc<OpenedRights>>,
}

impl CurrentGrants {
    /// Reads the grants file. Without a file, only the grants of the application apply.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read or is invalid.
    pub(crate) fn open(file: Option<PathBuf>, fixed: Vec<Grant>, mut protected: Vec<PathBuf>) -> Result<Self, Error> {
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
            fixed,
            protected,
            state: Mutex::default(),
        };
        let mut state = current.lock();
        if let Some(file) = &current.file {
            state.ledger = Ledger::open(sibling(file, ".used")).map_err(|error| unreadable(file, &error))?;
            current.refresh(&mut state, file);
            if let Some(error) = state.broken.take() {
                return Err(error);
            }
        } else if !current.fixed.is_empty() {
            state.loaded = Some(current.opened(Vec::new(), &mut HashMap::new()));
        }
        drop(state);
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

    /// Checks that the host can enforce rules.
    ///
    /// # Errors
    /// For the first directory that cannot be granted. The message contains its path.
    pub(crate) fn check(&self, rules: &GrantRules) -> Result<(), Error> {
        for rule in &rules.files {
            OpenDirectory::check(rule, &self.protected).map_err(|error| {
                Error::new(ErrorKind::Configuration, Phase::Registry, not_grantable(rule, &error))
                    .with_suggestion("grant another directory, such as one inside it")
            })?;
        }
        Ok(())
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
            let names_plugin = |loaded: &LoadedGrants| {
                let grants = &loaded.grants.grants;
                grants.iter().any(|grant| grant.plugin == **request.plugin)
            };
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
        Ok(self.opened(grants.grants, quotas))
    }

    /// Opens the directories of the application's grants and of those of the file.
    fn opened(&self, of_file: Vec<Grant>, quotas: &mut HashMap<PathBuf, Arc<DirectoryQuota>>) -> LoadedGrants {
        let grants = Grants {
            grants: self.fixed.iter().cloned().chain(of_file).collect(),
        };
        let opened = grants.grants.iter().map(|grant| self.open_all(grant, quotas)).collect();
        LoadedGrants {
            opened,
            grants,
            rights: HashMap::new(),
        }
    }

    fn open_all(&self, grant: &Grant, quotas: &mut HashMap<PathBuf, Arc<DirectoryQuota>>) -> OpenedGrant {
        let rules = grant.rules.files.iter();
        let opened = rules.map(|rule| {
            self.open_directory(rule, quotas).map_err(|error| {
                let unenforceable = UnenforceableRule {
                    position: grant.position,
                    reason: not_grantable(rule, &error),
                };
                tracing::warn!(plugin = grant.plugin, %unenforceable, "no call of the plugin runs");
                unenforceable
            })
        });
        opened.collect()
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
        let admitted = |ledger: &mut Ledger, grant_use| -> Vec<usize> {
            let applicable = applicable.iter().copied();
            let admitted = applicable.filter(|index| ledger.admit(&grants[*index], request.conversation, grant_use));
            admitted.collect()
        };
        // Found before a grant for one call is used up: otherwise the next call would run without the rule.
        let unenforceable = admitted(ledger, GrantUse::Preview)
            .into_iter()
            .find_map(|index| self.opened[index].as_ref().err().cloned())
            .filter(|_| request.declared.has(Capability::Files));
        let grant_use = if unenforceable.is_some() {
            GrantUse::Preview
        } else {
            grant_use
        };
        let unused = admitted(ledger, grant_use);
        let rights = if applicable.is_empty() {
            // Determines the reason only: another digest, or no grant at all.
            let effective = EffectiveRights::new(request.declared, &self.grants, request.plugin, request.digest);
            OpenedRights::new(effective, std::iter::empty())
        } else if unused.is_empty() {
            OpenedRights::none(request.declared, NoGrantReason::UsedUp)
        } else {
            let mut effective =
                EffectiveRights::of_grants(request.declared, unused.iter().map(|index| &grants[*index]));
            let opened = unused.iter().map(|index| &self.opened[*index]);
            effective.unenforceable = unenforceable;
            OpenedRights::new(effective, opened.flatten().flatten())
        };
        if applicable
            .iter()
            .all(|index| grants[*index].scope == GrantScope::Always)
        {
            self.rights.insert(key, rights.clone());
        }
        rights
    }

    /// Lists the rules that a plugin had and lost because its component changed, once for each component. A component for which
    /// the operator has written a grant since then has lost nothing.
    fn newly_lost(
        &self,
        request: AuthorityRequest<'_>,
        rights: &OpenedRights,
        announced: &mut HashSet<(String, String)>,
    ) -> Vec<String> {
        let stale = stale_grants(&self.grants, request.plugin, request.digest);
        let has_own =
            |grant: &Grant| grant.version != GrantedVersion::Any && grant.is_for(request.plugin, request.digest);
        if stale.is_empty() || self.grants.grants.iter().any(has_own) {
            return Vec::new();
        }
        if !announced.insert((request.plugin.to_string(), request.digest.to_owned())) {
            return Vec::new();
        }
        let before = EffectiveRights::of_grants(request.declared, stale).rules.describe();
        let now = rights.effective.rules.describe();
        before.into_iter().filter(|rule| !now.contains(rule)).collect()
    }
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

fn not_grantable(rule: &DirectoryRule, error: &io::Error) -> String {
    format!("the directory `{}` cannot be granted: {error}", rule.host.display())
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
