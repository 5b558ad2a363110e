//! What all plugins of a host share: the engines, the operator's limits, the live sessions.

use std::path::PathBuf;
use std::sync::Arc;

use super::code_cache::CodeCache;
use super::engine::Engines;
#[cfg(feature = "network")]
use super::http::ExtraRoots;
use super::http::{Network, Resolve};
use crate::call::session_registry::SessionRegistry;
use crate::grants::authority::{AuthorityProvider, KeyValueStore};
use toolwit_core::Error;
use toolwit_core::limits::{EngineLimits, LimitRequest};

/// Where machine code of compiled components is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeCacheLocation {
    /// In `toolwit/code` of the user's cache directory (`$XDG_CACHE_HOME`, else `~/.cache`).
    #[default]
    User,
    /// In this directory, which must belong to the user and be closed to others.
    Directory(PathBuf),
    /// Nowhere: every process compiles anew.
    Off,
}

impl CodeCacheLocation {
    /// Returns the directory, where there is one.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Directory(directory) => Some(directory.clone()),
            Self::User => user_cache_directory(),
        }
    }
}

/// How the plugins of a host run.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// Ceilings of the process.
    pub engine_limits: EngineLimits,
    /// What the operator allows each call; what is not set is at its default.
    pub operator_limits: LimitRequest,
    /// Where machine code is kept.
    pub code_cache: CodeCacheLocation,
    /// The operator's file of grants. Without one nothing is granted.
    pub grants: Option<PathBuf>,
    /// The file with the values of secrets, as [`SecretStore`](crate::SecretStore) keeps it.
    pub secrets: Option<PathBuf>,
    /// Files and directories of the host that can never be granted, beside those that are named here anyway.
    pub protected: Vec<PathBuf>,
    /// Where plugins keep values; in memory when nowhere is named.
    pub keyvalue: Option<Arc<dyn KeyValueStore>>,
    /// Who looks up names for granted requests; the machine's own resolver when nobody is named.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// Certificates in PEM of authorities that granted requests trust, beside those that the machine trusts.
    #[cfg(feature = "network")]
    pub extra_root_certificates: Vec<Vec<u8>>,
}

/// Runs plugins. One serves a whole process; clones of its `Arc` are cheap.
pub struct Runtime {
    pub(crate) engines: Engines,
    pub(crate) operator_limits: LimitRequest,
    pub(crate) sessions: SessionRegistry,
    pub(crate) authorities: Arc<AuthorityProvider>,
    pub(crate) network: Arc<Network>,
}

impl Runtime {
    /// Makes a runtime. Engines are made when the first component needs them.
    ///
    /// A code cache that cannot be used is left out with a warning: it costs time, not safety.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for limits under which nothing could run, for
    /// grants that cannot be read or enforced, and for certificates that cannot be used.
    pub fn new(options: RuntimeOptions) -> Result<Arc<Self>, Error> {
        options.operator_limits.check()?;
        let code_directory = options.code_cache.directory();
        let code_cache = code_directory.clone().and_then(open_cache);
        let protected = options.protected.into_iter().chain(code_directory).collect();
        let authorities = AuthorityProvider::new(options.grants, options.secrets, options.keyvalue, protected)?;
        let network = Network::new(options.resolver);
        #[cfg(feature = "network")]
        let network = network.trusting(ExtraRoots::read(&options.extra_root_certificates)?);
        let sessions = SessionRegistry::new(&options.engine_limits);
        Ok(Arc::new(Self {
            engines: Engines::new(options.engine_limits, code_cache)?,
            operator_limits: options.operator_limits,
            sessions,
            authorities: Arc::new(authorities),
            network: Arc::new(network),
        }))
    }

    /// Returns the cache of machine code, where there is one.
    #[must_use]
    pub fn code_cache(&self) -> Option<&CodeCache> {
        self.engines.code_cache.as_ref()
    }

    /// Logs a warning for each grant whose plugin is not among `known`: a mistyped name grants nothing.
    pub fn warn_about_unknown_grants<'a>(&self, known: impl Iterator<Item = &'a str>) {
        self.authorities.warn_about_unknown_plugins(known);
    }

    /// Returns the ceilings of the process.
    #[must_use]
    pub fn engine_limits(&self) -> &EngineLimits {
        &self.engines.limits
    }
}

fn open_cache(directory: PathBuf) -> Option<CodeCache> {
    match CodeCache::open(&directory) {
        Ok(cache) => Some(cache),
        Err(error) => {
            tracing::warn!(directory = %directory.display(), %error, "machine code is not cached");
            None
        }
    }
}

fn user_cache_directory() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("toolwit").join("code"))
}
