//! The runtime that all plugins of a host share: engines, operator limits, grants, network and session instances.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::session_limits::SessionLimits;
use super::spare_instances::SpareInstances;
use crate::grants::authority::{AuthorityProvider, AuthoritySources, HostPaths, KeyValueStore, SecretValues};
use crate::grants::file::{NewGrant, WritableRecord};
use crate::inspect::imports::WasiVersions;
use crate::link::compile::cache::CodeCache;
use crate::link::compile::cache_location::CodeCacheLocation;
use crate::link::compile::compiler::Compiler;
use crate::link::compile::engine::Engines;
#[cfg(feature = "network")]
use crate::link::host::http::ExtraRoots;
use crate::link::host::http::{Network, Resolve};
use crate::link::limits::call_clock::SharedBudgets;
use crate::link::limits::compute_turns::ComputeTurns;
use crate::link::limits::shared_budget::SharedBudget;
use toolwit_core::limits::{EngineLimits, LimitOverrides};
use toolwit_core::{Error, ToolId};

/// The options of a [`Runtime`]: the limits, files and services that its plugins share.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// The limits of the process, which all plugins share.
    pub engine_limits: EngineLimits,
    /// The operator's limits for each call. A limit that is not set has its default value.
    pub operator_limits: LimitOverrides,
    /// The ids of tools whose calls may take [`LONG_RUNNING_WALL`](toolwit_core::limits::LONG_RUNNING_WALL). The id of
    /// a method must not contain an entity, and applies to all entities of its type.
    pub long_running: Vec<ToolId>,
    /// The cache directory for machine code.
    pub code_cache: CodeCacheLocation,
    /// The compiler of components; by default, this process compiles them.
    pub compiler: Compiler,
    /// The versions of WASI that components can import; by default 0.2 only.
    pub wasi: WasiVersions,
    /// The path to the operator's grants file.
    pub grants_file: Option<PathBuf>,
    /// The grants of the application, in addition to the grants of the file.
    pub application_grants: Vec<NewGrant>,
    /// The path to the file with the values of secrets, as [`SecretStore`](crate::SecretStore) writes it.
    pub secrets_file: Option<PathBuf>,
    /// The secrets of the application. They take precedence over the secrets of the file.
    pub secret_values: SecretValues,
    /// Files and directories that cannot be granted. The grants file, the secrets file and the directory of the code cache cannot
    /// be granted either.
    pub protected_paths: Vec<PathBuf>,
    /// Files and directories from which plugins are loaded. They can be granted for reading only.
    pub plugin_paths: Vec<PathBuf>,
    /// Other files and directories that can be granted for reading only, such as a program that the host starts.
    pub read_only_paths: Vec<PathBuf>,
    /// The record of the directories that were writable for plugins; by default next to the grants file. Hosts with different
    /// grants files should share a record, so that none of them follows a link that a plugin of another one has left.
    pub writable_record: Option<WritableRecord>,
    /// The time at which the clocks of all plugins stand still, in seconds since 1970, so that calls can be replayed. The time is
    /// also the seed of the plugins' random bytes. If the time is not set, the grants decide about clocks and random bytes.
    pub frozen_at: Option<u64>,
    /// The key–value store of plugins; by default in memory.
    pub keyvalue: Option<Arc<dyn KeyValueStore>>,
    /// The name resolver for granted HTTP requests; by default the resolver of the system.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// Root certificates that granted HTTP requests trust in addition to the certificates of the system. Each item is text in PEM
    /// format.
    #[cfg(feature = "network")]
    pub extra_root_certificates: Vec<Vec<u8>>,
}

/// The state that all plugins of a process share: engines, limits, grants, the network and the limits on session instances.
/// A process needs only one runtime.
pub struct Runtime {
    pub(crate) engines: Arc<Engines>,
    pub(crate) operator_limits: LimitOverrides,
    long_running: HashSet<ToolId>,
    pub(crate) session_limits: SessionLimits,
    /// The turns to compute of all guests.
    pub(super) turns: Arc<ComputeTurns>,
    /// The budgets that all calls share.
    pub(super) budgets: SharedBudgets,
    pub(super) spares: Arc<SpareInstances>,
    pub(crate) authorities: Arc<AuthorityProvider>,
    pub(crate) network: Arc<Network>,
}

impl Runtime {
    /// Creates a runtime. An engine is created when the first component needs it.
    ///
    /// If the directory of the code cache cannot be used, the cache is disabled and a warning is logged.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for a limit that must not be zero, for grants
    /// that cannot be read or are invalid, and for secrets and certificates of the application that cannot be used;
    /// [`ErrorKind::Internal`](toolwit_core::ErrorKind::Internal) if a thread cannot be started. A granted rule that cannot be
    /// enforced does not cause an error, and allows nothing.
    pub fn new(options: RuntimeOptions) -> Result<Arc<Self>, Error> {
        options.operator_limits.check()?;
        let code_cache = options.code_cache.open();
        let code_directory = options.code_cache.directory();
        let protected = options.protected_paths.into_iter().chain(code_directory).collect();
        let authorities = AuthorityProvider::new(AuthoritySources {
            grants_file: options.grants_file,
            application_grants: options.application_grants,
            secrets_file: options.secrets_file,
            secret_values: options.secret_values,
            keyvalue: options.keyvalue,
            frozen_at: options.frozen_at,
            host_paths: HostPaths {
                protected,
                plugins: options.plugin_paths,
                read_only: options.read_only_paths,
            },
            writable_record: options.writable_record,
        })?;
        let network = Network::new(options.resolver);
        #[cfg(feature = "network")]
        let network = network.with_extra_roots(ExtraRoots::parse(&options.extra_root_certificates)?);
        let session_limits = SessionLimits::new(&options.engine_limits);
        let turns = ComputeTurns::new(options.engine_limits.computing_calls_max);
        let budgets = SharedBudgets {
            memory: SharedBudget::new(options.engine_limits.guest_memory_bytes_max),
            files: SharedBudget::new(guest_files_max(&options.engine_limits)),
        };
        let spares = Arc::new(SpareInstances::new(&options.engine_limits));
        Ok(Arc::new(Self {
            engines: Arc::new(Engines::new(
                options.engine_limits,
                code_cache,
                options.compiler,
                options.wasi,
            )?),
            operator_limits: options.operator_limits,
            long_running: options.long_running.into_iter().collect(),
            session_limits,
            turns,
            budgets,
            spares,
            authorities: Arc::new(authorities),
            network: Arc::new(network),
        }))
    }

    /// Returns whether the operator declares a tool as long-running.
    pub(super) fn is_long_running(&self, tool: &ToolId) -> bool {
        !self.long_running.is_empty() && self.long_running.contains(&tool.unbound())
    }

    /// Returns the cache of machine code, or `None` if it is disabled.
    #[must_use]
    pub fn code_cache(&self) -> Option<&CodeCache> {
        self.engines.code_cache.as_ref()
    }

    /// Logs a warning for each grant whose plugin is not in `plugin_names`, because its name may be mistyped.
    pub fn warn_about_unknown_grants<'a>(&self, plugin_names: impl Iterator<Item = &'a str>) {
        self.authorities.warn_about_unknown_plugins(plugin_names);
    }

    /// Returns the versions of WASI that components can import.
    #[must_use]
    pub fn wasi_versions(&self) -> WasiVersions {
        self.engines.wasi
    }

    /// Returns the limits of the process.
    #[must_use]
    pub fn engine_limits(&self) -> &EngineLimits {
        &self.engines.limits
    }
}

/// Returns the number of files and connections that guests may have open: `guest_files_max`, and at most half of the files that this
/// process may have open. The other half is for the host.
#[must_use]
pub fn guest_files_max(limits: &EngineLimits) -> u64 {
    let process_max = process_files_max().unwrap_or(u64::MAX);
    limits.guest_files_max.min(process_max / 2)
}

/// Returns the number of files that this process may have open (`RLIMIT_NOFILE`). Returns `None` if the system has no such limit.
#[cfg(unix)]
#[must_use]
pub fn process_files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Returns `None`, because the system has no such limit.
#[cfg(not(unix))]
#[must_use]
pub fn process_files_max() -> Option<u64> {
    None
}
