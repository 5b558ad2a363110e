//! Options for interceptors: plugins that wrap the calls of other tools.

use toolwit::registry::InterceptorSettings;

/// Selects the interceptors of calls.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct InterceptorFlags {
    /// Plugin that wraps every call, or PLUGIN=TOOL,TOOL for some tools; can be repeated, the first one outermost
    ///
    /// The accepted interceptors of the project always apply, inside these.
    #[arg(long = "interceptor", value_name = "PLUGIN")]
    interceptors: Vec<InterceptorSettings>,
}

impl InterceptorFlags {
    /// Returns the interceptors of the options, then those that were accepted for the project.
    pub(crate) fn with_accepted(&self, accepted: &[InterceptorSettings]) -> Vec<InterceptorSettings> {
        let mut interceptors = self.interceptors.clone();
        let additional = accepted.iter().filter(|setting| !self.interceptors.contains(setting));
        interceptors.extend(additional.cloned());
        interceptors
    }
}
