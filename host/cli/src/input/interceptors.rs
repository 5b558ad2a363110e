//! Options for interceptors: plugins that wrap the calls of other tools.

use serde::{Deserialize, Serialize};

use super::project_trust::ProjectTrust;
use toolwit::registry::InterceptorSettings;
use toolwit::{Error, ToolwitBuilder};

/// Options for the interceptors of calls.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InterceptorFlags {
    /// Plugin that wraps every call, or PLUGIN=TOOL,TOOL for some tools; can be repeated, the first one outermost
    ///
    /// The accepted interceptors of the project always apply, inside these.
    #[arg(long = "interceptor", value_name = "PLUGIN")]
    interceptors: Vec<InterceptorSettings>,
}

impl InterceptorFlags {
    /// Returns the flags for use in another directory: with the accepted interceptors of the project.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let interceptors = self.all()?;
        Ok(Self { interceptors })
    }

    /// Creates the options from the interceptors of a trace.
    ///
    /// # Errors
    /// If a setting of the trace is not valid.
    pub(crate) fn from_trace(settings: &[String]) -> Result<Self, Error> {
        let interceptors = settings
            .iter()
            .map(|setting| setting.parse())
            .collect::<Result<_, _>>()?;
        Ok(Self { interceptors })
    }

    /// Adds the interceptors to a host.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub(crate) fn add_to(&self, builder: ToolwitBuilder) -> Result<ToolwitBuilder, Error> {
        Ok(self
            .all()?
            .into_iter()
            .fold(builder, ToolwitBuilder::plugin_interceptor))
    }

    /// Returns the interceptors of the options, followed by the accepted interceptors of the project that are not among
    /// them.
    ///
    /// # Errors
    /// If the configuration of the project, or the record of the project settings that the user accepted, cannot be read.
    pub(crate) fn all(&self) -> Result<Vec<InterceptorSettings>, Error> {
        let project = ProjectTrust::find()?;
        let accepted = project.accepted_interceptors().iter();
        let additional = accepted.filter(|setting| !self.interceptors.contains(setting));
        Ok(self.interceptors.iter().chain(additional).cloned().collect())
    }
}
