//! Discovery of dynamic tools: the only part of the registry that runs guest code.
//!
//! `run` selects the plugins and runs them, `apply` merges the results into the scanned files.

mod apply;
mod run;

use crate::package::Package;
use toolwit_core::{Error, ErrorKind, Phase};

/// The message for dynamic tools that have not been discovered.
pub const TOOLS_NOT_DISCOVERED: &str = "its dynamic tools have not been discovered yet";

/// The plugins that a discovery runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveryTargets<'a> {
    /// Plugins whose dynamic tools have not been discovered, except for those whose discovery failed less than five minutes
    /// ago.
    Pending,
    /// The named plugins that have dynamic tools, whether discovered or not.
    Named(&'a [String]),
    /// All plugins that have dynamic tools, whether discovered or not.
    All,
}

/// Whether dynamic tools are discovered automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicDiscovery {
    /// Once for each new component, with the plugin's limits and grants. The result is stored.
    #[default]
    Automatic,
    /// Never: no guest code runs before a tool is called. Only dynamic tools from the store are available.
    Never,
}

/// The outcome of a discovery for one plugin.
#[derive(Clone, Debug)]
pub struct DiscoveryOutcome {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's number of tools, including those in its WIT, or the reason why the discovery failed.
    pub tools: Result<usize, Error>,
}

impl Package {
    /// Returns the reason why the dynamic tools of this package are missing: they have not been discovered yet, or their discovery
    /// failed. Its other tools are available. `None` if no tools are missing, or if the package is broken.
    #[must_use]
    pub fn discovery_error(&self) -> Option<Error> {
        self.plugin()
            .filter(|plugin| plugin.dynamic_tools_state().is_undiscovered())?;
        const SUGGESTION: &str = "run `LiveRegistry::discover_dynamic_tools`";
        let error = match self.discovery_failure() {
            Some(error) => {
                let suggestion = match &error.suggestion {
                    Some(fix) => format!("{fix}; then {SUGGESTION} again"),
                    None => format!("{SUGGESTION} again"),
                };
                Error::clone(error).with_suggestion(suggestion)
            }
            None => Error::new(ErrorKind::ToolUnavailable, Phase::Registry, TOOLS_NOT_DISCOVERED)
                .with_suggestion(SUGGESTION),
        };
        Some(error.with_plugin(&*self.name))
    }

    /// Returns the error of the last discovery, if the discovery failed. If the package is broken because of this error,
    /// [`Package::broken_reason`] returns the error instead.
    #[must_use]
    pub fn discovery_failure(&self) -> Option<&Error> {
        self.discovery_failure.as_deref()
    }
}
