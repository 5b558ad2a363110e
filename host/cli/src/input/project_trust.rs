//! The proposal of the project in the current directory, and the proposal that the user accepted.
//!
//! A `toolwit.toml` can name a grants file in its table `[grants]`, set limits, name a package index, list
//! interceptors, enable WASI 0.3, and configure MCP servers. Anyone who can change the project, such as the author of a
//! cloned repository, can change these settings. Therefore they grant nothing, raise no limit and start no server until
//! the user accepts them.
//!
//! `toolwit trust --accept DIGEST` copies the grants, the limits above the defaults, the index and the interceptors to
//! the user's configuration directory. Later changes of the project have no effect on the copy. The accepted index and
//! the accepted servers apply as long as the project proposes the same index and the same servers. WASI 0.3 applies as
//! long as the project enables it.

use std::fs;
use std::path::{Path, PathBuf};

use super::acceptance::{AcceptanceFiles, AcceptanceRecord, directory_identity};
use super::project_servers::ProjectServers;
use toolwit::limits::LimitOverrides;
use toolwit::mcp::McpConfig;
use toolwit::registry::{InterceptorSettings, Project, ProjectLimits, RemoteFile, RunSettings};
use toolwit::sandbox::{GrantsContent, GrantsFile};
use toolwit::tool::text::sha256;
use toolwit::{Error, ErrorKind, Phase};

/// Whether the user has accepted the proposal of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The proposal is not accepted and does not apply.
    NotAccepted,
    /// The proposal is accepted and applies.
    Accepted,
    /// An earlier proposal is accepted, and the project has changed since. The documentation of this module lists the
    /// accepted settings that still apply.
    Changed,
}

/// The proposal of a project.
pub(crate) struct Proposal {
    /// The grants, if the project names a grants file.
    pub(crate) grants: Option<GrantsContent>,
    /// The limits above the defaults.
    pub(crate) limits: ProjectLimits,
    /// The index of packages.
    pub(crate) index: Option<RemoteFile>,
    /// The interceptors.
    pub(crate) interceptors: Vec<InterceptorSettings>,
    /// Whether the project enables WASI 0.3.
    pub(crate) wasi_p3: bool,
    /// The MCP servers.
    pub(crate) servers: ProjectServers,
}

impl Proposal {
    /// Returns a digest of the complete proposal. If the proposal has only grants, this is the digest of the grants.
    pub(crate) fn digest(&self) -> String {
        let grants = self.grants.as_ref().map(GrantsContent::digest).unwrap_or_default();
        let index = self.index.as_ref().map(|index| format!("index.url = \"{index}\""));
        let interceptors = self
            .interceptors
            .iter()
            .map(|setting| format!("interceptor {setting:?}"));
        let wasi = self.wasi_p3.then(|| "sandbox.wasi_p3 = true".to_owned());
        let servers = self.servers.digest().map(|digest| format!("mcp = \"{digest}\""));
        let settings = self.limits.describe().into_iter().chain(index);
        let settings: Vec<_> = settings.chain(interceptors).chain(wasi).chain(servers).collect();
        if settings.is_empty() {
            return grants;
        }
        sha256(&format!("{grants}\n{}", settings.join("\n")))
    }
}

/// The project in the current directory: its settings, and the record of the proposal that the user accepted.
pub(crate) struct ProjectTrust {
    directory: PathBuf,
    limits: ProjectLimits,
    index: Option<RemoteFile>,
    interceptors: Vec<InterceptorSettings>,
    wasi_p3: bool,
    servers: ProjectServers,
    /// The project's grants file, if its configuration names one.
    proposed_grants: Option<GrantsFile>,
    /// The path of the accepted grants, if there are any.
    accepted_grants: Option<PathBuf>,
    /// The record of the accepted proposal, if there is one.
    record: Option<AcceptanceRecord>,
    /// Whether a proposal was accepted for another directory, which was at the same path.
    is_replaced: bool,
}

impl ProjectTrust {
    /// Reads the project in the current directory, and the record of its accepted proposal.
    ///
    /// # Errors
    /// If the current directory cannot be used, or the configuration of the project or the record cannot be read or is
    /// invalid.
    pub(crate) fn find() -> Result<Self, Error> {
        let directory = fs::canonicalize(".").map_err(|error| {
            let message = format!("the current directory cannot be used: {error}");
            Error::new(ErrorKind::Io, Phase::Registry, message)
        })?;
        let project = Project::read(Path::new("."))?;
        // Without a configuration directory, nothing was accepted.
        let files = AcceptanceFiles::of_project(&directory).ok();
        let record = files.as_ref().map(AcceptanceFiles::read).transpose()?.flatten();
        let is_replaced = record.as_ref().is_some_and(|record| !record.is_for(&directory));
        let record = record.filter(|_| !is_replaced);
        Ok(Self {
            limits: project.limits(),
            index: project.index.url,
            interceptors: project.interceptors,
            wasi_p3: project.sandbox.wasi_p3,
            servers: ProjectServers::read(&directory)?,
            proposed_grants: project.grants.file.map(|file| GrantsFile::new(directory.join(file))),
            accepted_grants: files.and_then(|files| files.accepted_grants(record.as_ref())),
            record,
            is_replaced,
            directory,
        })
    }

    /// Returns the project's grants file, if its configuration names one.
    pub(crate) fn proposed_grants(&self) -> Option<&GrantsFile> {
        self.proposed_grants.as_ref()
    }

    /// Reads the proposal of the project.
    ///
    /// # Errors
    /// If its grants file cannot be read or is invalid.
    pub(crate) fn proposal(&self) -> Result<Proposal, Error> {
        Ok(Proposal {
            grants: self.proposed_grants.as_ref().map(GrantsFile::content).transpose()?,
            limits: self.limits.raised(),
            index: self.index.clone(),
            interceptors: self.interceptors.clone(),
            wasi_p3: self.wasi_p3,
            servers: self.servers.clone(),
        })
    }

    /// Returns whether the project proposes anything that applies only after it is accepted.
    pub(crate) fn has_proposal(&self) -> bool {
        self.proposed_grants.is_some()
            || !self.limits.raised().is_empty()
            || self.index.is_some()
            || !self.interceptors.is_empty()
            || self.wasi_p3
            || !self.servers.is_empty()
    }

    /// Compares the current proposal with the accepted one. A proposal that cannot be read counts as changed.
    pub(crate) fn trust(&self) -> Trust {
        let Some(record) = &self.record else {
            return Trust::NotAccepted;
        };
        let is_same = |proposal: Proposal| proposal.digest() == record.digest;
        if self.proposal().is_ok_and(is_same) {
            Trust::Accepted
        } else {
            Trust::Changed
        }
    }

    /// Accepts a proposal in place of the earlier proposal. If the proposal has no grants, the earlier grants are no
    /// longer accepted.
    ///
    /// # Errors
    /// If there is no configuration directory, or the record or the copy of the grants cannot be written.
    pub(crate) fn accept(&mut self, proposal: &Proposal) -> Result<(), Error> {
        let record = AcceptanceRecord {
            digest: proposal.digest(),
            directory: directory_identity(&self.directory),
            index: proposal.index.clone(),
            interceptors: proposal.interceptors.clone(),
            wasi_p3: proposal.wasi_p3,
            servers: proposal.servers.digest().map(str::to_owned),
            limits: proposal.limits.clone(),
            ..AcceptanceRecord::default()
        };
        let files = AcceptanceFiles::of_project(&self.directory)?;
        self.record = Some(files.accept(record, proposal.grants.as_ref())?);
        self.is_replaced = false;
        Ok(())
    }

    /// Returns the path of the accepted grants, if there are any.
    ///
    /// The accepted grants apply even if the project no longer proposes grants. Otherwise, a plugin that can write to
    /// the project could replace them by the user's other grants.
    pub(crate) fn accepted_grants(self) -> Option<PathBuf> {
        self.accepted_grants
    }

    /// Returns the project's limits for each call. A limit above the default applies only up to the accepted limit.
    pub(crate) fn call_limits(&self) -> LimitOverrides {
        self.limits.of_calls(&self.accepted_limits())
    }

    /// Returns the project's limits for each run. A limit above the default applies only up to the accepted limit.
    pub(crate) fn run_limits(&self) -> RunSettings {
        self.limits.of_runs(&self.accepted_limits())
    }

    /// Returns the ids of the project's long-running tools that were accepted.
    pub(crate) fn long_running(&self) -> Vec<String> {
        let accepted = self.accepted_limits();
        self.limits.long_running(&accepted).map(str::to_owned).collect()
    }

    /// Returns the index that was accepted, if the project still names it.
    pub(crate) fn accepted_index(&self) -> Option<&RemoteFile> {
        let accepted = self.record.as_ref()?.index.as_ref();
        accepted.filter(|accepted| Some(*accepted) == self.index.as_ref())
    }

    /// Returns the accepted interceptors. They apply even if the project no longer proposes them. Otherwise, a plugin
    /// that can write to the project could remove them.
    pub(crate) fn accepted_interceptors(&self) -> &[InterceptorSettings] {
        self.record.as_ref().map_or(&[], |record| &record.interceptors)
    }

    /// Returns whether the project enables WASI 0.3, and the user has accepted WASI 0.3.
    pub(crate) fn is_wasi3_enabled(&self) -> bool {
        self.wasi_p3 && self.record.as_ref().is_some_and(|record| record.wasi_p3)
    }

    /// Returns the project's MCP servers, if exactly these servers were accepted. If the configuration of any server
    /// has changed, returns no servers.
    pub(crate) fn accepted_servers(&self) -> McpConfig {
        let accepted = self.record.as_ref().and_then(|record| record.servers.as_deref());
        if accepted.is_some() && accepted == self.servers.digest() {
            self.servers.config().clone()
        } else {
            McpConfig::default()
        }
    }

    fn accepted_limits(&self) -> ProjectLimits {
        self.record
            .as_ref()
            .map(|record| record.limits.clone())
            .unwrap_or_default()
    }

    /// Logs a warning if the proposal of the project does not apply.
    pub(crate) fn warn(&self) {
        match self.trust() {
            Trust::NotAccepted if self.is_replaced => tracing::warn!(
                "the project was accepted for another directory at this path; what was accepted does not apply; `toolwit trust` shows what the project proposes"
            ),
            Trust::NotAccepted if self.has_proposal() => tracing::warn!(
                "the project proposes grants, higher limits, an index, interceptors, WASI 0.3 or MCP servers, which do not apply; `toolwit trust` shows them, and how to accept them"
            ),
            Trust::Changed => tracing::warn!(
                "the grants, limits, index, interceptors, WASI 0.3 or MCP servers that the project proposes have changed since they were accepted; `toolwit trust` shows them"
            ),
            Trust::Accepted | Trust::NotAccepted => {}
        }
    }
}
