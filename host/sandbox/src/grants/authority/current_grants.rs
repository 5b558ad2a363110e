//! The current grants: those of the application, and those of the grants file, which is read again after it has
//! changed.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::conversation_number::ConversationNumber;
use super::directory_opener::{DirectoryOpener, HostPaths};
use super::file_stamp::FileStamp;
use super::ledger::{Admissions, GrantUse, Ledger};
use super::loaded_grants::{LoadedGrants, RightsDecision};
use super::rights::{AuthorityRequest, OpenedRights};
use crate::grants::file::WritableRecord;
use crate::grants::{Grant, GrantRules, Grants, GrantsError, NoGrantReason};
use toolwit_core::file::read_file;
use toolwit_core::limits::GRANTS_BYTES_MAX;
use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase};

/// The time limit for recording the use of a grant. Only a process that is suspended or hangs holds the lock of the
/// grants file for longer.
const RECORD_WALL_MAX: Duration = Duration::from_secs(10);

/// The current grants: those of the application, and those of the file.
///
/// While the file cannot be read or is invalid, no grant applies, not even those of the application. A rule that cannot
/// be enforced allows nothing; all others apply.
pub(crate) struct CurrentGrants {
    file: Option<PathBuf>,
    /// The grants of the application.
    application_grants: Vec<Grant>,
    /// Held for short times only, because calls on executor threads wait for it.
    state: Mutex<GrantsState>,
    /// Held while the file is read and its directories are opened, which waits for the disk and for other processes.
    directory_opener: Mutex<DirectoryOpener>,
    /// Held while uses are recorded, so that at most one thread waits for the disk and for other processes.
    ledger: Arc<tokio::sync::Mutex<Ledger>>,
}

/// The grants as they were last loaded, and the outcome of the last reading of the file.
struct GrantsState {
    /// The metadata of the file from when it was last read.
    stamp: Option<FileStamp>,
    /// The last valid grants. They do not apply while there is a `load_error`.
    loaded: Option<LoadedGrants>,
    /// The reason why the file currently grants nothing.
    load_error: Option<Error>,
    /// The names and digests of the plugins whose lost rules have been reported.
    reported_losses: HashSet<(String, String)>,
}

impl CurrentGrants {
    /// Reads the grants file, and opens the granted directories. Without a file, only the grants of the application
    /// apply. No plugin gets access to the file.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read or is invalid.
    pub(crate) fn open(
        file: Option<PathBuf>,
        application_grants: Vec<Grant>,
        mut host_paths: HostPaths,
        writable_record: Option<WritableRecord>,
    ) -> Result<Self, Error> {
        host_paths.protected.extend(file.iter().cloned());
        let state = GrantsState {
            stamp: None,
            loaded: None,
            load_error: None,
            reported_losses: HashSet::new(),
        };
        let ledger = file.as_deref().map(Ledger::of).unwrap_or_default();
        let current = Self {
            directory_opener: Mutex::new(DirectoryOpener::new(file.clone(), &host_paths, writable_record)),
            ledger: Arc::new(tokio::sync::Mutex::new(ledger)),
            file,
            application_grants,
            state: Mutex::new(state),
        };
        current.load(&mut current.lock_directory_opener());
        let load_error = current.lock_state().load_error.take();
        load_error.map_or(Ok(current), Err)
    }

    /// Lists the plugin that each grant names, for the grants that concern these plugin directories. A plugin with several
    /// grants occurs several times.
    pub(crate) fn granted_plugins(&self, plugin_directories: &[PathBuf]) -> Vec<String> {
        let state = self.lock_state();
        let grants = state.loaded.iter().flat_map(LoadedGrants::grants);
        let grants = grants.filter(|grant| grant.concerns(plugin_directories));
        grants.map(|grant| grant.plugin.clone()).collect()
    }

    /// Returns whether the file has changed, or a granted directory was removed or created, since the grants were
    /// loaded. Compares metadata only, which is cheap enough for every call.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.lock_state();
        let file_changed = self
            .file
            .as_ref()
            .is_some_and(|file| state.stamp.as_ref() != Some(&FileStamp::of(file)));
        file_changed || state.loaded.as_ref().is_some_and(LoadedGrants::is_outdated)
    }

    /// If the grants are stale, reads the file again and opens the directories that it grants. Blocks on the disk, and
    /// on other processes that change the grants.
    pub(crate) fn reread(&self) {
        let mut directory_opener = self.lock_directory_opener();
        // Another thread may have read the file meanwhile.
        if self.is_stale() {
            self.load(&mut directory_opener);
            let load_error = self.lock_state().load_error.clone();
            if let (Some(error), Some(file)) = (load_error, &self.file) {
                tracing::error!(file = %file.display(), %error, "the grants no longer apply");
            }
        }
    }

    /// Returns whether all grants that gave these rights are still among the current grants, used up or not. Does not
    /// read the file.
    pub(crate) fn still_contain_grants_of(&self, rights: &OpenedRights) -> bool {
        let state = self.lock_state();
        let loaded = state.loaded.as_ref().filter(|_| state.load_error.is_none());
        rights.grant_identities.is_empty() || loaded.is_some_and(|loaded| loaded.contain_grants_of(rights))
    }

    /// Checks that the directories of rules can be granted in addition to the current grants.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for the first directory that cannot be granted. The message contains its path.
    pub(crate) fn check(&self, rules: &GrantRules) -> Result<(), Error> {
        let grants = self.lock_state().loaded.as_ref().map(|loaded| loaded.grants().to_vec());
        self.lock_directory_opener().check(rules, &grants.unwrap_or_default())
    }

    /// Computes the rights of a plugin. [`GrantUse::Call`] uses up grants that are valid for one call, so pass it
    /// exactly once per call.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] for a plugin that had a grant, while the file is unreadable or invalid.
    pub(crate) async fn rights(&self, request: AuthorityRequest<'_>, grant_use: GrantUse) -> Result<CallRights, Error> {
        let undecided_grants = match self.decide_rights(request, grant_use, None)? {
            CallRightsDecision::Decided(rights) => return Ok(rights),
            CallRightsDecision::Undecided(grants) => grants,
        };
        // Boxed, because this future is rarely needed and would enlarge the future of every call.
        let admissions = Box::pin(self.admit(undecided_grants, request.conversation, grant_use)).await;
        let mut rights = match self.decide_rights(request, grant_use, Some(&admissions))? {
            CallRightsDecision::Decided(rights) => rights,
            CallRightsDecision::Undecided(_) => {
                OpenedRights::none(request.declared, NoGrantReason::UseNotRecorded).into()
            }
        };
        rights.has_limited_grants = true;
        Ok(rights)
    }

    /// Decides which of these grants apply to a call, and records their use for [`GrantUse::Call`]. Runs on a thread
    /// for blocking work. If the decision takes longer than [`RECORD_WALL_MAX`], none of the grants applies.
    async fn admit(&self, grants: Vec<Grant>, conversation: ConversationNumber, grant_use: GrantUse) -> Admissions {
        let ledger = self.ledger.clone();
        let decision = async move {
            let mut ledger = ledger.lock_owned().await;
            tokio::task::spawn_blocking(move || ledger.admit(&grants, conversation, grant_use)).await
        };
        match tokio::time::timeout(RECORD_WALL_MAX, decision).await {
            Ok(Ok(admissions)) => admissions,
            Ok(Err(error)) => {
                tracing::error!(%error, "recording the use of grants failed unexpectedly");
                Admissions::default()
            }
            Err(_) => {
                tracing::error!(
                    "a grant does not apply: its use was not recorded in time, perhaps because another process locks the grants file"
                );
                Admissions::default()
            }
        }
    }

    /// Computes the rights of a plugin for a call, or returns the grants about which the ledger must decide first.
    /// `admissions` has the decisions of the ledger, if it has made them. Does not read the disk.
    fn decide_rights(
        &self,
        request: AuthorityRequest<'_>,
        grant_use: GrantUse,
        admissions: Option<&Admissions>,
    ) -> Result<CallRightsDecision, Error> {
        let mut state = self.lock_state();
        let GrantsState {
            loaded,
            load_error,
            reported_losses,
            ..
        } = &mut *state;
        if let Some(error) = load_error {
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
                Ok(CallRightsDecision::Decided(
                    OpenedRights::none(request.declared, NoGrantReason::Unreadable).into(),
                ))
            };
        }
        let Some(loaded) = loaded else {
            return Ok(CallRightsDecision::Decided(request.no_rights.clone().into()));
        };
        let rights = match loaded.rights(request, admissions) {
            RightsDecision::Decided(rights) => rights,
            RightsDecision::Undecided(grants) => return Ok(CallRightsDecision::Undecided(grants)),
        };
        let mut decided = CallRights::from(rights);
        if grant_use == GrantUse::Call {
            decided.lost_rules = loaded.newly_lost_rules(request, &decided.rights, reported_losses);
        }
        Ok(CallRightsDecision::Decided(decided))
    }

    fn lock_state(&self) -> MutexGuard<'_, GrantsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_directory_opener(&self) -> MutexGuard<'_, DirectoryOpener> {
        self.directory_opener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the grants of the application and of the file. If the file has become unreadable or invalid, the last
    /// valid grants stay in memory, to identify the plugins that had a grant.
    fn load(&self, directory_opener: &mut DirectoryOpener) {
        let Some(file) = &self.file else {
            if !self.application_grants.is_empty() {
                let loaded = LoadedGrants::open(self.application_grants.clone(), directory_opener);
                self.lock_state().loaded = Some(loaded);
            }
            return;
        };
        // The metadata is read before the content, so that the next call notices a change between the two.
        let stamp = FileStamp::of(file);
        let outcome = read_grants(file).map(|file_grants| {
            tracing::info!(file = %file.display(), grants = file_grants.len(), "the grants file was read");
            let grants = self.application_grants.iter().cloned().chain(file_grants).collect();
            LoadedGrants::open(grants, directory_opener)
        });
        let mut state = self.lock_state();
        state.stamp = Some(stamp);
        match outcome {
            Ok(loaded) => {
                state.loaded = Some(loaded);
                state.load_error = None;
            }
            Err(error) => {
                state.load_error = Some(error);
            }
        }
    }
}

fn read_grants(file: &Path) -> Result<Vec<Grant>, Error> {
    let bytes = read_file(file, GRANTS_BYTES_MAX).map_err(|error| unreadable(file, &error))?;
    let grants = Grants::parse(&bytes).map_err(|error| invalid(file, &error))?;
    Ok(grants.grants)
}

/// The rights of a plugin in a call, and the rules that the plugin has lost.
pub(crate) struct CallRights {
    pub(crate) rights: Arc<OpenedRights>,
    /// The rules that the plugin lost because its component changed; empty except in the first call after
    /// the change.
    pub(crate) lost_rules: Vec<String>,
    /// Whether the plugin has a grant for one call or one conversation, which this call may have used up.
    pub(crate) has_limited_grants: bool,
}

/// The rights of a plugin in a call, or the grants about which the ledger must decide first.
enum CallRightsDecision {
    Decided(CallRights),
    /// The grants that are valid for one call or one conversation only.
    Undecided(Vec<Grant>),
}

impl From<Arc<OpenedRights>> for CallRights {
    fn from(rights: Arc<OpenedRights>) -> Self {
        Self {
            rights,
            lost_rules: Vec::new(),
            has_limited_grants: false,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::grants::DeclaredCapabilities;
    use toolwit_core::file::LockedFile;

    /// The grants of a file with a permanent grant for `calc`, and one for `once` that is valid for one call.
    struct Setup {
        directory: tempfile::TempDir,
        current: Arc<CurrentGrants>,
    }

    impl Setup {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("grants.toml");
            let grant = |plugin: &str, scope: &str| {
                format!("[[grant]]\nplugin = \"{plugin}\"\nany-version = true\n{scope}\nconfig = {{ a = \"b\" }}\n")
            };
            let text = [grant("calc", ""), grant("once", "scope = \"once\"")].concat();
            std::fs::write(&file, format!("version = 1\n{text}")).unwrap();
            let current = CurrentGrants::open(Some(file), Vec::new(), HostPaths::default(), None).unwrap();
            Self {
                directory,
                current: Arc::new(current),
            }
        }

        /// Holds the lock of the file, as a command that changes the grants does.
        fn lock_file(&self) -> LockedFile {
            LockedFile::acquire(&self.directory.path().join("grants.toml")).unwrap()
        }
    }

    /// Computes the rights for a call of a plugin, and returns whether a grant applies to the call.
    async fn is_granted(current: Arc<CurrentGrants>, plugin: &str) -> bool {
        let declared = DeclaredCapabilities::default();
        let request = AuthorityRequest {
            plugin: &Arc::from(plugin),
            no_rights: &OpenedRights::none(&declared, NoGrantReason::NotNamed),
            digest: "",
            declared: &declared,
            conversation: ConversationNumber::default(),
            caller: None,
        };
        let rights = current.rights(request, GrantUse::Call).await.unwrap().rights;
        rights.effective.no_grant.is_none()
    }

    #[tokio::test]
    async fn a_locked_grants_file_delays_only_calls_that_use_up_a_grant() {
        let setup = Setup::new();
        let lock = setup.lock_file();
        let mut waiting = std::pin::pin!(is_granted(setup.current.clone(), "once"));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(!setup.current.is_stale());
        assert!(is_granted(setup.current.clone(), "calc").await);
        drop(lock);
        assert!(waiting.await, "the lock was released");
        assert!(!is_granted(setup.current.clone(), "once").await, "the grant is used up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_does_not_apply_if_its_use_is_not_recorded_in_time() {
        let setup = Setup::new();
        let lock = setup.lock_file();
        let mut waiting = std::pin::pin!(is_granted(setup.current.clone(), "once"));
        assert!(futures::poll!(&mut waiting).is_pending());
        tokio::time::advance(RECORD_WALL_MAX).await;
        assert!(!waiting.await);
        // The thread that waits for the lock can now end.
        drop(lock);
    }
}
